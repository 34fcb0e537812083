"""What is told of a search, for people."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pprint import pformat
from typing import TYPE_CHECKING, Any

from hookledger.testing.given import Given
from hookledger.testing.plan import DEATHS, OVERLAPS, Plan, Then
from hookledger.testing.stage import Ended

if TYPE_CHECKING:
    from hookledger.testing.converge import Difference

LONGEST_STATE = 2000
MOST_SEEN = 24


def difference(given: Sequence[Given], found: Difference, tried: int) -> str:
    """A sequence that ended in another state."""
    plan, names = found.plan, _names(given)
    arrived = list(dict.fromkeys(plan.arrivals))
    lines = [
        "the handlers do not converge: the same deliveries end in two states.",
        "",
        *[f"  {names[number]}  {given[number].label}" for number in sorted(arrived)],
        "",
        f"The smallest sequence that was found, of {tried} that were tried:",
        *_sequence(plan, found.ended, names),
        "  it ends in",
        *_state(found.ended),
        "",
        f"Each once, in the order {', '.join(names[number] for number in found.order)}, it is",
        *_state(found.reference),
        "",
        _hint(plan, found),
    ]
    return "\n".join(lines)


def not_repeatable(given: Sequence[Given], first: Ended, second: Ended) -> str:
    """Two runs of one sequence that ended in two states."""
    names = _names(given)
    return "\n".join(
        [
            "the same deliveries, each once and in the same order, end in another state when that is done again:",
            "",
            *[f"  {name}  {one.label}" for name, one in zip(names, given, strict=True)],
            "",
            "  the first time",
            *_state(first),
            "  the second time",
            *_state(second),
            "",
            "Either the state holds what is never the same, as the time of arrival or a random number: leave it out of "
            "read_state if that is as it should be. Or a handler keeps something outside the database, as in a "
            "variable of its module, that a crash loses or doubles: keep it in the database, through tx. What other "
            "code keeps there can be put back with reset=.",
        ]
    )


def all_ignored(given: Sequence[Given]) -> str:
    """No handler takes any of the deliveries."""
    kinds = sorted({f"{new.source} {new.event_type}" for one in given for new in one.accepted.events})
    return f"no handler of the inbox takes any of the deliveries ({', '.join(kinds)}), so they show nothing"


def dead(ended: Ended) -> str:
    """Deliveries are given up even in order."""
    lines = [f"  {source} {event_id}: {why}" for (source, event_id), why in ended.dead.items()]
    return "\n".join(
        [
            "deliveries are given up even when each comes once, in order:",
            *lines,
            "Correct the handler or the delivery; if that is as it should be, give dead_letters=True.",
        ]
    )


def _names(given: Sequence[Given]) -> list[str]:
    letters = string.ascii_uppercase
    return [letters[one.number] if len(given) <= len(letters) else f"#{one.number + 1}" for one in given]


def _sequence(plan: Plan, ended: Ended, names: Sequence[str]) -> list[str]:
    lines: list[str] = []
    before: set[int] = set()
    for turn, seen in zip(plan.rounds, ended.seen, strict=True):
        for number in turn.arrivals:
            again = " again" if number in before else ""
            days = ", a day and some hours after what came before" if plan.days_apart else ""
            lines.append(f"{names[number]} comes{again}{days}")
            before.add(number)
        lines.append(turn.then.value)
        if turn.then in OVERLAPS or turn.then in DEATHS:
            lines += [f"   {line}" for line in seen[:MOST_SEEN]]
            if len(seen) > MOST_SEEN:
                lines.append(f"   ... and {len(seen) - MOST_SEEN} steps more")
    if plan.rounds[-1].then in DEATHS:
        lines.append("another worker takes over")
    return _numbered(lines)


def _numbered(lines: Sequence[str]) -> list[str]:
    numbered: list[str] = []
    count = 0
    for line in lines:
        if line.startswith(" "):
            numbered.append(f"     {line}")
        else:
            count += 1
            numbered.append(f"  {count:2}. {line}")
    return numbered


def _state(ended: Ended) -> list[str]:
    written = pformat(ended.state, width=100, sort_dicts=False)
    if len(written) > LONGEST_STATE:
        written = f"{written[:LONGEST_STATE]} ..."
    lines = [f"      {line}" for line in written.splitlines()]
    lines += [f"      given up: {source} {event_id} ({why})" for (source, event_id), why in ended.dead.items()]
    return lines


def _hint(plan: Plan, found: Difference) -> str:
    endings = {turn.then for turn in plan.rounds}
    if _same_rows(found.ended.state, found.reference.state) and found.ended.dead.keys() == found.reference.dead.keys():
        return "Both have the same rows in another order: give the query of read_state an ORDER BY."
    if endings & OVERLAPS.keys():
        return (
            "Both workers read before either has committed, and what one writes back the other has not seen. Change it "
            "in one statement (SET total = total + :amount), or lock what you read (SELECT ... FOR UPDATE)."
        )
    if endings & {*DEATHS}:
        return (
            "What a handler does outside the transaction is done again when its worker dies before the commit. Do it "
            "through tx, or where delivery.idempotency_key makes a second time harmless."
        )
    if plan.days_apart:
        return (
            "The state depends on when deliveries come. Take the time from the event, not from the receipt or a clock."
        )
    if len(plan.arrivals) > len(set(plan.arrivals)):
        return "A repeated event changes the state, though its handlers do not run again."
    if endings <= {Then.TOGETHER, Then.ALONE} and len(set(plan.arrivals)) > 1:
        return (
            "The state depends on the order of arrival. An event that carries the whole state belongs to "
            "@inbox.snapshot, with a version that orders it; an accumulate handler may only do what gives the same in "
            "any order, and a snapshot handler must not rely on seeing every version."
        )
    return "The state depends on more than which events have come."


def _same_rows(first: Any, second: Any) -> bool:
    """Whether two lists differ in their order only."""
    if not isinstance(first, list) or not isinstance(second, list) or first == second:
        return False
    return sorted(map(repr, first)) == sorted(map(repr, second))
