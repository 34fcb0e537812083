"""The decision of the watermark: the end is a function of the set of deliveries (D7)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger.errors import Reject
from hookledger.ledger.rows import Watermark
from hookledger.version import Version, time_version
from hookledger.worker.decide import contest, refuse_far_future
from hookledger.worker.outcome import Snapshot
from tests.unit.worker.deliveries import RECEIVED, snapshot

NOTHING = Watermark(None, None)

# Few values, so that ties come often; equal numbers of different types are equal versions.
parts = st.one_of(st.integers(0, 4), st.sampled_from([Decimal("1.0"), Decimal("1.5"), Decimal(3)]))
pairs = st.tuples(parts, parts)


@st.composite
def histories(draw: st.DrawFn) -> list[Snapshot]:
    """Snapshots of one resource in the order of their arrival."""
    versions = draw(st.lists(pairs, min_size=1, max_size=12))
    return [snapshot(id, version, deleted=draw(st.booleans())) for id, version in enumerate(versions, 1)]


@st.composite
def batches(draw: st.DrawFn, history: Sequence[Snapshot]) -> list[list[Snapshot]]:
    """The history in any order, with repeats, cut into batches; in one batch a delivery comes once."""
    order = draw(st.permutations(history))
    again = draw(st.lists(st.sampled_from(history), max_size=5))
    cut: list[list[Snapshot]] = [[]]
    for given_snapshot in [*order, *again]:
        if given_snapshot in cut[-1] or draw(st.booleans()):
            cut.append([])
        cut[-1].append(given_snapshot)
    return [batch for batch in cut if batch]


def work_off(batch: Sequence[Snapshot], watermark: Watermark, failing: frozenset[int] = frozenset()) -> Watermark:
    """What the batch does: the newest that does not fail is applied."""
    decided = contest(batch, watermark)
    for candidate in decided.candidates:
        if candidate.claimed.delivery.id not in failing:
            return Watermark(candidate.version, candidate.claimed.delivery.id)
    return watermark


def newest(history: Sequence[Snapshot]) -> Watermark:
    version, id = max(one.rank for one in history)
    return Watermark(version, id)


@given(st.data(), histories())
def test_any_order_and_any_cut_into_batches_ends_the_same(data: st.DataObject, history: list[Snapshot]) -> None:
    watermark = NOTHING
    for batch in data.draw(batches(history)):
        watermark = work_off(batch, watermark)
    assert watermark == newest(history)


@given(st.data(), histories())
def test_failures_that_pass_later_change_nothing(data: st.DataObject, history: list[Snapshot]) -> None:
    ids = [one.claimed.delivery.id for one in history]
    watermark = NOTHING
    for batch in data.draw(batches(history)):
        watermark = work_off(batch, watermark, data.draw(st.frozensets(st.sampled_from(ids))))
    assert work_off(history, watermark) == newest(history)


@given(histories(), st.none() | st.tuples(pairs, st.integers(1, 12)))
def test_every_snapshot_is_decided_once(history: list[Snapshot], before: tuple[Version, int] | None) -> None:
    watermark = NOTHING if before is None else Watermark(*before)
    decided = contest(history, watermark)
    told = [*decided.candidates, *decided.stale, *(one for one, _ in decided.uncomparable)]
    assert sorted(one.claimed.delivery.id for one in told) == [one.claimed.delivery.id for one in history]


@given(histories(), pairs, st.integers(1, 12))
def test_the_watermark_is_never_moved_back(history: list[Snapshot], version: Version, id: int) -> None:
    watermark = Watermark(version, id)
    for candidate in contest(history, watermark).candidates:
        assert candidate.rank >= (version, id)
    for refused in contest(history, watermark).stale:
        assert refused.rank < (version, id)


@given(histories())
def test_the_newest_comes_first(history: list[Snapshot]) -> None:
    ranks = [one.rank for one in contest(history, NOTHING).candidates]
    assert ranks == sorted(ranks, reverse=True)


def test_on_equal_versions_the_later_arrival_wins() -> None:
    first, second = snapshot(1, (7,)), snapshot(2, (7,))
    assert contest([second, first], NOTHING).candidates == (second, first)
    assert contest([first], Watermark((7,), 2)).stale == (first,)
    assert contest([second], Watermark((7,), 1)).candidates == (second,)


def test_equal_versions_of_different_kinds_are_equal() -> None:
    later = snapshot(2, (7,))
    assert contest([later], Watermark((Decimal("7.000000"),), 1)).candidates == (later,)
    assert contest([later], Watermark((Decimal("7.000001"),), 1)).stale == (later,)


def test_a_delivery_may_run_again_that_set_the_watermark_itself() -> None:
    again = snapshot(5, (7,))
    assert contest([again], Watermark((7,), 5)).candidates == (again,)


@pytest.mark.parametrize("watermark", [NOTHING, Watermark((1, 1), 1)])
def test_versions_of_another_shape_are_never_stale(watermark: Watermark) -> None:
    pair, single = snapshot(2, (3, 1)), snapshot(3, (9,))
    decided = contest([single, pair], watermark)
    assert decided.candidates == (pair,)
    assert decided.stale == ()
    ((refused, error),) = decided.uncomparable
    assert refused is single
    assert "version=" in str(error)


def test_a_first_snapshot_alone_is_applied() -> None:
    alone = snapshot(1, (1,))
    assert contest([alone], NOTHING).candidates == (alone,)


@pytest.mark.parametrize(
    ("ahead", "refused"),
    [
        (timedelta(seconds=-86_400), False),
        (timedelta(seconds=2), False),
        (timedelta(hours=1), False),
        (timedelta(hours=1, microseconds=1), True),
        (timedelta(days=30_000), True),
    ],
)
def test_a_time_in_the_far_future_is_refused(ahead: timedelta, refused: bool) -> None:
    given_snapshot = snapshot(1, (time_version(RECEIVED + ahead),))
    if refused:
        with pytest.raises(Reject, match="future_tolerance"):
            refuse_far_future(given_snapshot, timedelta(hours=1))
    else:
        refuse_far_future(given_snapshot, timedelta(hours=1))


@given(st.integers(0, 10**18))
def test_a_counter_is_never_in_the_future(number: int) -> None:
    refuse_far_future(snapshot(1, (number,)), timedelta(0))


def test_only_the_first_part_is_a_time() -> None:
    far = time_version(RECEIVED + timedelta(days=999))
    refuse_far_future(snapshot(1, (1, far)), timedelta(0))
