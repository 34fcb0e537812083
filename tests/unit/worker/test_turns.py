"""Which slot may begin a batch: one at a time, for as long as it is at work."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

from hookledger.worker.turns import Turns

IN_TIME = 60


def in_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """The test as pytest calls it."""

    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Slot:
    """A slot that works all the time, or waits all the time.

    Args:
        works: whether it works.
    """

    def __init__(self, *, works: bool) -> None:
        self._works = works
        self._looks = itertools.count(1)
        self.looked_at = asyncio.Event()
        """Set once it was looked at several times while it had the turn."""

    def processor_time(self) -> float:
        if next(self._looks) == 6:
            self.looked_at.set()
        return asyncio.get_running_loop().time() if self._works else 0.0


@in_a_loop
async def test_a_slot_that_waits_lets_the_next_one_begin() -> None:
    turns, first, second = Turns(), Slot(works=False), Slot(works=True)
    async with asyncio.timeout(IN_TIME):
        await turns.take(first)
        await turns.take(second)


@in_a_loop
async def test_a_slot_that_works_goes_on_alone_until_it_has_nothing_to_do() -> None:
    turns, first, second = Turns(), Slot(works=True), Slot(works=True)
    async with asyncio.timeout(IN_TIME):
        await turns.take(first)
        waiting = asyncio.create_task(turns.take(second))
        await first.looked_at.wait()
        turns.keep(first)
        await turns.take(first)
        assert not waiting.done()
        turns.pass_on(first)
        await waiting


@in_a_loop
async def test_who_has_not_the_turn_cannot_pass_it_on() -> None:
    turns, first, second = Turns(), Slot(works=True), Slot(works=True)
    async with asyncio.timeout(IN_TIME):
        await turns.take(first)
        turns.pass_on(second)
        waiting = asyncio.create_task(turns.take(second))
        await first.looked_at.wait()
        assert not waiting.done()
        turns.pass_on(first)
        await waiting


@in_a_loop
async def test_at_the_end_nobody_waits() -> None:
    turns, first, second, third = Turns(), Slot(works=True), Slot(works=True), Slot(works=True)
    async with asyncio.timeout(IN_TIME):
        await turns.take(first)
        waiting = [asyncio.create_task(turns.take(slot)) for slot in (second, third)]
        await first.looked_at.wait()
        turns.end()
        await asyncio.gather(*waiting)
        await turns.take(second)
