"""The check finds nothing in what is right, and each fault in what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hookledger.demo.check import Verdict, check
from hookledger.demo.evidence import Evidence, State
from hookledger.demo.model import Total
from hookledger.demo.traffic import Event, Kind

OLD = Event(Kind.CUSTOMER, "old", "customer.updated", "cus", 1, 10)
NEW = Event(Kind.CUSTOMER, "new", "customer.updated", "cus", 2, 20)
PAID = Event(Kind.CHARGE, "paid", "charge.succeeded", "cus", 1, 500)
PAID_AGAIN = Event(Kind.CHARGE, "again", "charge.succeeded", "cus", 1, 700)
EVENTS = (OLD, NEW, PAID, PAID_AGAIN)
CUSTOMER, CHARGES = (Kind.CUSTOMER, "cus"), (Kind.CHARGE, "cus")

RIGHT = Evidence(
    deliveries={NEW.key: 1, OLD.key: 2, PAID.key: 3, PAID_AGAIN.key: 4},
    outcomes={NEW.key: "applied", OLD.key: "stale", PAID.key: "applied", PAID_AGAIN.key: "applied"},
    unsettled={},
    written=Counter({(NEW.key, None): 1, (PAID.key, 500): 1, (PAID_AGAIN.key, 700): 1}),
    own_states={CUSTOMER: State(20, deleted=False)},
    returned_states={CUSTOMER: State(20, deleted=False)},
    returned_totals={CHARGES: Total(2, 1200)},
    p50=None,
    p99=None,
)


def judged(evidence: Evidence, events: tuple[Event, ...] = EVENTS) -> tuple[int, int, int]:
    verdict = check(events, {event.key for event in events}, evidence)
    assert bool(verdict.faults) == (verdict != Verdict())
    return verdict.lost, verdict.doubled, verdict.misordered


def without(name: str, key: object) -> Evidence:
    """The right evidence with one row less."""
    rows = getattr(RIGHT, name)
    left = type(rows)({other: value for other, value in rows.items() if other != key})
    changed: Evidence = replace(RIGHT, **{name: left})
    return changed


def test_what_is_right() -> None:
    assert judged(RIGHT) == (0, 0, 0)


def test_what_was_not_acknowledged_is_not_missed() -> None:
    unsent = Event(Kind.CHARGE, "unsent", "charge.succeeded", "cus", 1, 1)
    assert check((*EVENTS, unsent), {event.key for event in EVENTS}, RIGHT) == Verdict()


@pytest.mark.parametrize("name", ["deliveries", "outcomes"])
@pytest.mark.parametrize("event", [OLD, PAID])
def test_an_event_without_its_row_in_the_ledger_is_lost(name: str, event: Event) -> None:
    lost, _, misordered = judged(without(name, event.key))
    assert (lost, misordered) == (1, 0)


@pytest.mark.parametrize("event", [NEW, PAID])
def test_an_applied_event_that_left_nothing_is_lost(event: Event) -> None:
    assert judged(without("written", (event.key, None if event is NEW else event.number))) == (1, 0, 0)


@pytest.mark.parametrize(("event", "outcome"), [(PAID, "stale"), (PAID, "ignored"), (OLD, "ignored")])
def test_an_event_with_an_outcome_that_it_cannot_have_is_lost(event: Event, outcome: str) -> None:
    evidence = replace(RIGHT, outcomes={**RIGHT.outcomes, event.key: outcome})
    assert judged(evidence)[0] == 1


def test_the_reason_is_told() -> None:
    evidence = replace(without("outcomes", PAID.key), unsettled={PAID.key: "is a dead letter (failed): boom"})
    assert check(EVENTS, set(), evidence).faults == ["lost: charge.succeeded paid is a dead letter (failed): boom"]


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("event", [NEW, PAID])
def test_a_row_that_is_there_more_than_once_is_doubled(event: Event, times: int) -> None:
    row = (event.key, None if event is NEW else event.number)
    assert judged(replace(RIGHT, written=Counter({**RIGHT.written, row: times}))) == (0, times - 1, 0)


def test_a_row_of_an_event_that_was_refused_is_doubled() -> None:
    assert judged(replace(RIGHT, written=Counter({**RIGHT.written, (OLD.key, None): 1}))) == (0, 1, 0)


def test_a_row_of_no_event_is_doubled() -> None:
    stranger = (("stripe", "stranger"), 5)
    assert judged(replace(RIGHT, written=Counter({**RIGHT.written, stranger: 1}))) == (0, 1, 0)


def test_a_row_with_another_number_is_a_loss_and_a_stranger() -> None:
    rows = Counter({**without("written", (PAID.key, 500)).written, (PAID.key, 501): 1})
    assert judged(replace(RIGHT, written=rows)) == (1, 1, 0)


@pytest.mark.parametrize(
    ("total", "expected"),
    [(Total(1, 500), (1, 0, 0)), (Total(2, 1199), (1, 0, 0)), (Total(3, 1700), (0, 1, 0)), (Total(2, 1201), (0, 1, 0))],
)
def test_a_total_that_its_parts_do_not_make(total: Total, expected: tuple[int, int, int]) -> None:
    assert judged(replace(RIGHT, returned_totals={CHARGES: total})) == expected


def test_a_total_that_is_not_there() -> None:
    assert judged(replace(RIGHT, returned_totals={})) == (1, 0, 0)


@pytest.mark.parametrize("name", ["own_states", "returned_states"])
@pytest.mark.parametrize("found", [State(10, deleted=False), State(20, deleted=True), None])
def test_a_resource_in_another_state_is_misordered(name: str, found: State | None) -> None:
    changed: Any = {CUSTOMER: found} if found else {}
    assert judged(replace(RIGHT, **{name: changed})) == (0, 0, 1)


def test_a_resource_is_misordered_once_however_often_it_is_seen() -> None:
    wrong = {CUSTOMER: State(10, deleted=False)}
    assert judged(replace(RIGHT, own_states=wrong, returned_states=wrong)) == (0, 0, 1)


def test_what_is_deleted_keeps_no_state_in_the_ledger() -> None:
    gone = replace(NEW, deleted=True)
    events = (OLD, gone, PAID, PAID_AGAIN)
    evidence = replace(
        RIGHT,
        own_states={CUSTOMER: State(20, deleted=True)},
        returned_states={CUSTOMER: State(None, deleted=True)},
    )
    assert judged(evidence, events) == (0, 0, 0)
    assert judged(RIGHT, events) == (0, 0, 1)


@pytest.mark.parametrize(("later", "expected"), [(lambda old, new: new, 0), (lambda old, new: old, 1)])
def test_of_two_in_one_second_the_later_arrival_wins(later: Callable[[Event, Event], Event], expected: int) -> None:
    tied = replace(OLD, moment=NEW.moment)
    winner = later(tied, NEW)
    evidence = replace(
        RIGHT,
        deliveries={**RIGHT.deliveries, tied.key: 5 if winner is tied else 1, NEW.key: 1 if winner is tied else 5},
    )
    assert judged(evidence, (tied, NEW, PAID, PAID_AGAIN)) == (0, 0, expected)
