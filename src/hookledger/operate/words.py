"""What a story says, in sentences: where the delivery is, what a handler made of it, and why."""

from __future__ import annotations

from datetime import UTC, datetime

from hookledger.operate.filters import State
from hookledger.operate.moments import shown_moment
from hookledger.operate.story import Mark, Story, Told
from hookledger.outcomes import Outcome
from hookledger.version import Version

LIKE_TIMES = (900_000_000, 5_000_000_000)
"""Versions between these are most likely Unix times, of the years from 1998 to 2128."""


def state_in_words(story: Story) -> str:
    """Where the delivery is, and what comes next."""
    found = story.found
    if found.state is State.SETTLED:
        return f"settled at {shown_moment(found.settled_at)}" if found.settled_at else "settled"
    if found.state is State.DEAD:
        times = "once" if found.attempts == 1 else f"{found.attempts} times"
        return f"dead since {shown_moment(story.died_at)}: {found.reason}, tried {times}"
    return f"pending: {_next_try(story)}"


def outcome_in_words(told: Told) -> str:
    """What a handler made of it, with the other version and the delivery that won where there is one."""
    at = shown_moment(told.at)
    if told.outcome is Outcome.IGNORED:
        return f"ignored at {at}: no handler of the inbox matched it"
    if told.version is None:
        return f"{told.outcome.value} at {at}"
    own = version_in_words(told.version)
    if told.outcome is Outcome.APPLIED:
        if told.after is None or told.before is None:
            return f"applied at {at}: its version {own} became the watermark"
        return f"applied at {at}: the watermark was {mark_in_words(told.before)} and became {own}"
    if told.outcome is Outcome.STALE:
        if told.before is None:
            return f"stale at {at}: the watermark was above its version {own}"
        if told.before.set_at is None:
            return f"stale at {at}: its version is {own}, and the watermark is now {mark_in_words(told.before)}"
        winner = f"watermark {version_in_words(told.before.version)} was set by delivery {told.before.delivery_id}"
        return f"stale at {at}: {winner} at {shown_moment(told.before.set_at)}; its own version is {own}"
    if told.after is None:
        return f"superseded at {at}: a newer one was applied in the same batch; its own version is {own}"
    newer = f"delivery {told.after.delivery_id} with version {version_in_words(told.after.version)}"
    return f"superseded at {at}: {newer} was applied in the same batch; its own version is {own}"


def verification_in_words(story: Story) -> str:
    """How it is known to be genuine."""
    if story.imported is not None:
        at, origin = story.imported
        return f"verified when it was imported from {origin} at {shown_moment(at)}, whatever its age"
    if story.released is not None:
        return f"refused at first and kept in the quarantine as {story.released}; verified when it was released"
    return "verified when it was received"


def body_in_words(story: Story) -> str | None:
    """Why there is no body to show; None if there is one."""
    if story.erased is not None:
        at, who = story.erased
        return f"body and headers were erased at {shown_moment(at)} by {who}; outcomes and watermark remain"
    if story.body is None:
        return "body and headers were dropped by retention; outcomes and watermark remain"
    return None


def mark_in_words(mark: Mark) -> str:
    """A watermark, with the delivery that set it."""
    at = "" if mark.set_at is None else f" at {shown_moment(mark.set_at)}"
    return f"{version_in_words(mark.version)} (set by delivery {mark.delivery_id}{at})"


def version_texts(version: Version) -> list[str]:
    """The parts of a version, without loss and without an exponent."""
    return [str(part) if isinstance(part, int) else format(part, "f") for part in version]


def version_in_words(version: Version) -> str:
    """A version as numbers, and as a time where it looks like one."""
    numbers = ", ".join(version_texts(version))
    if len(version) == 1 and LIKE_TIMES[0] < version[0] < LIKE_TIMES[1]:
        return f"{numbers} ({shown_moment(datetime.fromtimestamp(float(version[0]), UTC))})"
    return numbers


def _next_try(story: Story) -> str:
    found = story.found
    attempts = found.attempts or 0
    if story.pauses:
        held = " and ".join([f"the {pause.kind.value} {pause.name} is paused" for pause in story.pauses])
        return f"{held} since {shown_moment(story.pauses[0].since)}; resume it to have it run"
    if found.due_at is None:
        return "no due time"
    seconds = (found.due_at - story.read_at).total_seconds()
    due = shown_moment(found.due_at)
    if seconds <= 0:
        return f"attempt {attempts + 1} is due since {due} and waits for a worker"
    if attempts and found.error is None:
        return f"attempt {attempts} is under way, or its worker died; then it is tried again at {due}"
    return f"attempt {attempts + 1} is due at {due}, in {_span(seconds)}"


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
