"""How a replay ended: in words, with what to do about it, and as an exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookledger.cli.errors import DONE, FAILED, INTERRUPTED, PARTLY

if TYPE_CHECKING:
    from hookledger.operate.replay import Replay

TOLD_APART = ("pending", "failed")
"""Counts that are no outcomes; they stand at the end of the line."""


def ended_in_words(replay: Replay) -> str:
    """How a replay stands, in one line."""
    outcomes = replay.result.get("outcomes", {})
    parts = ", ".join(f"{count:,} {name}" for name, count in sorted(outcomes.items()) if name not in TOLD_APART)
    failed, waiting = (outcomes.get(name, 0) for name in ("failed", "pending"))
    line = f"replay {replay.id} {replay.state.value}: {replay.queued:,} made pending"
    line += f"; {parts}" if parts else ""
    line += f"; {failed:,} failed and wait for their next attempt" if failed else ""
    line += f"; {waiting:,} still pending" if waiting else ""
    why = replay.result.get("why")
    return f"{line} ({why})" if why else line


def advice(replay: Replay) -> str | None:
    """What to do about deliveries that nobody has worked on, or that the workers' handlers passed over."""
    result = replay.result
    missed = result.get("missed", 0)
    if missed and replay.selection.matching is not None:
        name = replay.selection.matching.handler
        return (
            f"{missed:,} were settled without {name}: the workers that run do not know the handler yet. Deploy it to "
            "them, then run the same command again"
        )
    parked = result.get("parked", 0)
    untouched = result.get("untouched", 0)
    if untouched and untouched + parked == replay.queued and replay.options.most_pending:
        return (
            "nothing was worked on: no worker seems to run. Start one with `hookledger worker MODULE:INBOX`; what is "
            "pending runs then"
        )
    if parked:
        return f"{parked:,} wait for what is paused: `hookledger pause` shows it, `hookledger resume` ends it"
    return None


def status_of_ended(replay: Replay, *, interrupted: bool) -> int:
    """The exit status of the command that ran it."""
    state = replay.state.value
    if state != "done":
        if interrupted and state == "stopped":
            return INTERRUPTED
        return PARTLY if replay.queued else FAILED
    outcomes = replay.result.get("outcomes", {})
    bad = outcomes.get("failed", 0) + outcomes.get("dead", 0) + replay.result.get("missed", 0)
    if not bad:
        return DONE
    return FAILED if bad >= replay.queued else PARTLY
