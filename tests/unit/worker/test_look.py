"""Where claims begin, and when a slot looks from the beginning (D9, B043)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hookledger.worker.look import SECONDS_BETWEEN_FULL_LOOKS, FullLooks, Look

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Row:
    """What a look wants to know of a claimed row."""

    id: int
    look_from: datetime


def rows(*places: tuple[int, int]) -> Any:
    return [Row(id, NOON + timedelta(seconds=seconds)) for seconds, id in places]


def looked(look: Look, found: Any, at: float, *, took: float = 0.0, all_taken: bool = False) -> Any:
    """Look at a time; where it began."""
    since = look.since(at)
    look.found(found, at + took, all_taken=all_taken)
    return since


def test_the_first_look_is_from_the_beginning_and_the_next_from_what_it_found() -> None:
    look = Look(FullLooks())
    assert looked(look, rows((0, 9), (0, 3), (1, 1)), 0) is None
    assert look.since(1) == (NOON, 3)


def test_if_there_was_no_more_the_next_look_is_behind_it() -> None:
    look = Look(FullLooks())
    looked(look, rows((0, 9), (1, 1)), 0, all_taken=True)
    assert look.since(1) == (NOON + timedelta(seconds=1), 1)


def test_one_slot_looks_from_the_beginning_for_all_of_them() -> None:
    full = FullLooks()
    slots = [Look(full) for _ in range(4)]
    for slot in slots:
        looked(slot, rows((5, 1)), 0)
    late = SECONDS_BETWEEN_FULL_LOOKS
    assert [looked(slot, rows((5, 1)), late) is None for slot in slots] == [True, False, False, False]
    assert [looked(slot, rows((5, 1)), late + 1) is None for slot in slots] == [False] * 4


def test_looks_that_take_long_are_rare() -> None:
    look = Look(FullLooks())
    looked(look, rows((0, 1)), 0, took=2)
    assert [looked(look, rows((0, 1)), at) is None for at in (2, 10, 39, 40)] == [False, False, False, True]


def test_who_has_found_nothing_looks_once_more_unless_that_takes_long() -> None:
    look = Look(FullLooks())
    looked(look, rows((0, 1)), 0, took=0.01)
    assert looked(look, rows(), 0.5) is not None
    assert look.again(0.5)
    assert looked(look, rows(), 0.5, took=2) is None
    assert looked(look, rows((3, 1)), 3, took=2) is None, "it knows no other place"
    assert not look.again(40)


def test_a_worker_that_ends_when_nothing_is_due_makes_sure_each_time() -> None:
    look = Look(FullLooks(rare=False))
    looked(look, rows((0, 1)), 0, took=100)
    assert looked(look, rows(), 101) is None or look.again(101)
