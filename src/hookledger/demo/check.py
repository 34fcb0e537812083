"""Holds what came out against what must come out: what was lost, doubled or misordered.

lost        an acknowledged event that is not in the ledger, or is there without an outcome, or has left nothing
            where its handler writes; and a total that is too small though its parts are all there
doubled     what a handler wrote more often than once for one event, or for an event that it should not have
            applied; and a total that is too large though its parts are as they should be
misordered  a resource whose state, in the handler's own table or in the ledger, is not that of its newest event
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hookledger.demo.evidence import EventKey, Evidence, State
from hookledger.demo.model import Model, Resource, Total, expect
from hookledger.demo.traffic import Event

APPLIED = "applied"
REFUSED = ("stale", "superseded")


@dataclass
class Verdict:
    """How many of each kind of fault there are, and each in words."""

    lost: int = 0
    doubled: int = 0
    misordered: int = 0
    faults: list[str] = field(default_factory=list)

    def lose(self, what: str) -> None:
        """Count something as lost."""
        self.lost += 1
        self.faults.append(f"lost: {what}")

    def double(self, what: str, times: int = 1) -> None:
        """Count something as doubled."""
        self.doubled += times
        self.faults.append(f"doubled: {what}")

    def misorder(self, what: str) -> None:
        """Count a resource as misordered."""
        self.misordered += 1
        self.faults.append(f"misordered: {what}")


def check(events: Iterable[Event], acknowledged: set[EventKey], evidence: Evidence) -> Verdict:
    """Judge the end state.

    Args:
        events: the different ones that were sent.
        acknowledged: what was answered 2xx.
        evidence: what the database holds.
    """
    verdict = Verdict()
    recorded = [event for event in events if event.key in acknowledged or event.key in evidence.deliveries]
    model = expect(recorded)
    faulty = _check_events(recorded, evidence, verdict)
    _check_strangers(recorded, evidence, verdict)
    _check_totals(model, faulty, evidence, verdict)
    _check_states(model, evidence, verdict)
    return verdict


def _check_events(events: Iterable[Event], evidence: Evidence, verdict: Verdict) -> set[Resource]:
    """Check each event for itself; the resources of those with a fault."""
    faulty: set[Resource] = set()
    for event in events:
        before = len(verdict.faults)
        named = f"{event.event_type} {event.event_id}"
        written = evidence.written[event.key, None if event.kind.is_snapshot else event.number]
        outcome = evidence.outcomes.get(event.key)
        if event.key not in evidence.deliveries:
            verdict.lose(f"{named} was acknowledged and is not in the ledger")
        elif outcome is None:
            verdict.lose(f"{named} {evidence.unsettled.get(event.key, 'has no outcome')}")
        elif outcome == APPLIED and written == 0:
            verdict.lose(f"{named} is applied, and its handler's row is not there")
        elif outcome != APPLIED and not (event.kind.is_snapshot and outcome in REFUSED):
            verdict.lose(f"{named} is {outcome}")
        allowed = 0 if outcome in REFUSED else 1
        if written > allowed:
            verdict.double(f"{named} is {outcome}, and its handler's row is there {written} times", written - allowed)
        if len(verdict.faults) > before:
            faulty.add((event.kind, event.resource))
    return faulty


def _check_strangers(events: Iterable[Event], evidence: Evidence, verdict: Verdict) -> None:
    """Rows that are of no event, or not with the number that the event has."""
    known = {(event.key, None if event.kind.is_snapshot else event.number) for event in events}
    for (key, number), times in evidence.written.items():
        if (key, number) not in known:
            verdict.double(f"{' '.join(key)}: a row with the number {number}, which no event has", times)


def _check_totals(model: Model, faulty: set[Resource], evidence: Evidence, verdict: Verdict) -> None:
    for resource, expected in model.totals.items():
        if resource in faulty:
            continue  # told already, with the event
        found = evidence.returned_totals.get(resource, Total())
        said = f"{resource[1]} has {found.count} making {found.sum}, not {expected.count} making {expected.sum}"
        if (found.count, found.sum) > (expected.count, expected.sum):
            verdict.double(said)
        elif found != expected:
            verdict.lose(said)


def _check_states(model: Model, evidence: Evidence, verdict: Verdict) -> None:
    nothing = State(None, deleted=False)
    for resource, tied in model.newest.items():
        # Of those that happened in the same second the later arrival wins, and its number tells which that was.
        winner = max(tied, key=lambda event: evidence.deliveries.get(event.key, 0))
        own = State(winner.number, winner.deleted)
        returned = State(None if winner.deleted else winner.number, winner.deleted)
        found_own = evidence.own_states.get(resource, nothing)
        found_returned = evidence.returned_states.get(resource, nothing)
        if (found_own, found_returned) != (own, returned):
            verdict.misorder(f"{resource[1]} is {_in_words(found_own, found_returned)}, not {_in_words(own, returned)}")


def _in_words(own: State, returned: State) -> str:
    return " and in the ledger ".join(
        f"{state.number}{' (deleted)' if state.deleted else ''}" for state in (own, returned)
    )
