"""What --json prints of deliveries: names that stay, times as ISO 8601 in UTC, versions as lists of numbers in text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookledger.operate.find import Found
    from hookledger.operate.pauses import Pause
    from hookledger.operate.story import Mark, Story


def iso(moment: datetime | None) -> str | None:
    """A moment for programs: ISO 8601 in UTC."""
    return None if moment is None else moment.astimezone(UTC).isoformat()


def found_document(found: Found) -> dict[str, Any]:
    """A delivery as the object that --json prints; times are ISO 8601 in UTC."""
    return {
        "id": found.id,
        "source": found.source,
        "event_id": found.event_id,
        "event_type": found.event_type,
        "resource": found.resource,
        "received_at": iso(found.received_at),
        "state": found.state.value,
        "attempts": found.attempts,
        "due_at": iso(found.due_at),
        "paused": found.parked,
        "reason": found.reason,
        "error": found.error,
        "fingerprint": found.fingerprint,
        "outcomes": found.outcomes,
        "settled_at": iso(found.settled_at),
    }


def story_document(story: Story) -> dict[str, Any]:
    """The story as the object that --json prints: times are ISO 8601 in UTC, versions lists of numbers as text."""
    from hookledger.operate.words import outcome_in_words, state_in_words, verification_in_words

    return {
        **found_document(story.found),
        "says": state_in_words(story),
        "version": _version(story.version),
        "position": story.position,
        "verification": verification_in_words(story),
        "headers": [list(pair) for pair in story.headers],
        "body": _body(story),
        "imported": story.imported and {"at": iso(story.imported[0]), "origin": story.imported[1]},
        "released_from_quarantine": story.released,
        "erased": story.erased and {"at": iso(story.erased[0]), "who": story.erased[1]},
        "died_at": iso(story.died_at),
        "by_handler": [
            {
                "handler": told.handler,
                "outcome": told.outcome.value,
                "at": iso(told.at),
                "version": _version(told.version),
                "watermark_before": _mark(told.before),
                "watermark_after": _mark(told.after),
                "says": outcome_in_words(told),
            }
            for told in story.outcomes
        ],
        "attempts_failed": {
            "count": story.attempts_in_all,
            "newest": [
                {
                    "attempt": attempt.attempt,
                    "at": iso(attempt.at),
                    "handler": attempt.handler,
                    "error": attempt.error,
                    "fingerprint": attempt.fingerprint,
                }
                for attempt in story.attempts
            ],
        },
        "redeliveries": {
            "count": story.copies_in_all,
            "newest": [
                {
                    "received_at": iso(copy.received_at),
                    "differs": copy.differs,
                    "headers": [list(pair) for pair in copy.headers],
                }
                for copy in story.copies
            ],
        },
        "pauses": [
            {
                "kind": each.kind.value,
                "name": each.name,
                "since": iso(each.since),
                "who": each.who,
                "reason": each.reason,
            }
            for each in story.pauses
        ],
        "replays": [
            {
                "id": each.id,
                "kind": each.kind,
                "who": each.who,
                "reason": each.reason,
                "started_at": iso(each.started_at),
            }
            for each in story.replays
        ],
    }


def pause_document(pause: Pause) -> dict[str, Any]:
    """A pause as an object."""
    return {
        "kind": pause.kind.value,
        "name": pause.name,
        "since": iso(pause.since),
        "who": pause.who,
        "reason": pause.reason,
    }


def _mark(mark: Mark | None) -> dict[str, Any] | None:
    if mark is None:
        return None
    return {"version": _version(mark.version), "delivery_id": mark.delivery_id, "set_at": iso(mark.set_at)}


def _version(version: Any) -> list[str] | None:
    from hookledger.operate.words import version_texts

    return None if version is None else version_texts(version)


def _body(story: Story) -> dict[str, Any] | None:
    """The body for programs: as text with secret members masked, or as base64 where it is no text."""
    from base64 import b64encode

    from hookledger.operate.pretty import masked_text

    if story.body is None:
        return None
    about = {"size": len(story.body), "sha256": story.digest}
    try:
        return {**about, "text": masked_text(story.body.decode("utf-8"), story.content_type)}
    except UnicodeDecodeError:
        return {**about, "base64": b64encode(story.body).decode("ascii")}
