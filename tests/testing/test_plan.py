"""Sequences as values: what they are compared with, where they are cut, how many deaths they may have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hookledger.testing.plan import DEATHS, Plan, Then, once_each, reference_order
from hookledger.testing.recording import _joined
from hookledger.testing.strategies import plans

arrivals = st.lists(st.integers(0, 5), min_size=1)
groups = st.lists(st.frozensets(st.integers(0, 5), min_size=2), max_size=3).map(
    lambda sets: _joined(list(map(set, sets)))
)


@given(arrivals)
def test_without_ties_the_reference_is_the_given_order(numbers: list[int]) -> None:
    assert reference_order(numbers, []) == tuple(sorted(set(numbers)))


@given(arrivals, groups)
def test_only_tied_ones_keep_the_order_of_arrival(numbers: list[int], tied: list[frozenset[int]]) -> None:
    order = reference_order(numbers, tied)
    assert sorted(order) == sorted(set(numbers))
    for group in tied:
        assert [one for one in order if one in group] == [one for one in dict.fromkeys(numbers) if one in group]
    free = [one for one in order if not any(one in group for group in tied)]
    assert free == sorted(free)


@given(st.lists(st.frozensets(st.integers(0, 9), min_size=1), max_size=6))
def test_groups_with_a_common_member_are_one(sets: list[frozenset[int]]) -> None:
    joined = _joined([set(each) for each in sets])
    assert frozenset().union(*joined) == frozenset().union(*sets)
    assert sum(len(group) for group in joined) == len(frozenset().union(*sets))
    assert all(any(each <= group for group in joined) for each in sets)


@given(plans(4, 2))
def test_every_arrival_is_in_one_round_and_workers_run_after_it(plan: Plan) -> None:
    assert tuple(number for turn in plan.rounds for number in turn.arrivals) == plan.arrivals
    assert all(turn.then is not Then.NEXT for turn in plan.rounds)
    assert sum(turn.then in DEATHS for turn in plan.rounds) <= 2


def test_too_many_deaths_are_none() -> None:
    plan = Plan(((0, Then.WORKED), (1, Then.CLAIMED), (2, Then.COMMITTED), (0, Then.NEXT)))
    assert [turn.then for turn in plan.with_deaths(1).rounds] == [
        Then.WORKED,
        Then.TOGETHER,
        Then.TOGETHER,
        Then.TOGETHER,
    ]
    assert [(turn.arrivals, turn.then) for turn in once_each((2, 0)).rounds] == [((2, 0), Then.ALONE)]
