"""The model is a function of the set of events, and agrees with applying them one by one in their true order."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hookledger.demo.model import Total, expect
from hookledger.demo.traffic import Event, Kind, make_traffic


def event(kind: Kind, resource: str, moment: int, number: int, *, deleted: bool = False) -> Event:
    return Event(kind, f"e{number}", "some.type", resource, moment, number, deleted)


def test_nothing_gives_nothing() -> None:
    model = expect([])
    assert model.newest == {}
    assert model.totals == {}


def test_the_highest_moment_wins() -> None:
    older, newer = event(Kind.CUSTOMER, "a", 5, 1), event(Kind.CUSTOMER, "a", 6, 2)
    assert expect([newer, older]).newest == {(Kind.CUSTOMER, "a"): (newer,)}


def test_a_delete_is_a_snapshot_like_any_other() -> None:
    gone, late = event(Kind.CUSTOMER, "a", 6, 1, deleted=True), event(Kind.CUSTOMER, "a", 5, 2)
    assert expect([gone, late]).newest[Kind.CUSTOMER, "a"] == (gone,)


def test_ties_are_all_kept() -> None:
    first, second, before = (
        event(Kind.PULL_REQUEST, "a", moment, number) for moment, number in ((5, 1), (5, 2), (4, 3))
    )
    assert set(expect([first, before, second]).newest[Kind.PULL_REQUEST, "a"]) == {first, second}


def test_facts_are_counted_and_added() -> None:
    facts = [event(Kind.CHARGE, "a", 1, 10), event(Kind.CHARGE, "a", 1, 5), event(Kind.CHARGE, "b", 1, 1)]
    assert expect(facts).totals == {(Kind.CHARGE, "a"): Total(2, 15), (Kind.CHARGE, "b"): Total(1, 1)}


def test_kinds_do_not_mix() -> None:
    model = expect([event(Kind.CUSTOMER, "a", 1, 1), event(Kind.CHARGE, "a", 9, 2)])
    assert list(model.newest) == [(Kind.CUSTOMER, "a")]
    assert list(model.totals) == [(Kind.CHARGE, "a")]


@given(count=st.integers(1, 200), seed=st.integers(0, 1_000), shuffle=st.randoms(use_true_random=False))
def test_the_order_does_not_matter(count: int, seed: int, shuffle: Random) -> None:
    events = list(make_traffic(count, seed).events)
    straight = expect(events)
    shuffle.shuffle(events)
    shuffled = expect(events)
    assert shuffled.totals == straight.totals
    assert {resource: set(tied) for resource, tied in shuffled.newest.items()} == {
        resource: set(tied) for resource, tied in straight.newest.items()
    }


@given(count=st.integers(1, 200), seed=st.integers(0, 1_000))
def test_it_agrees_with_applying_one_by_one(count: int, seed: int) -> None:
    events = make_traffic(count, seed).events
    last: dict[tuple[Kind, str], Event] = {}
    for happened in events:  # in the order of their moments, by construction
        last[happened.kind, happened.resource] = happened
    model = expect(events)
    for resource, tied in model.newest.items():
        assert last[resource] in tied
        assert {one.moment for one in tied} == {last[resource].moment}
