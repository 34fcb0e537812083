"""Which slot may begin a batch.

Slots whose handlers are fast only take the interpreter from each other, as threads and as tasks alike: measured, four
of them settle less than one. So one slot goes on alone, batch after batch, for as long as its thread is at work. When
that mostly waits, as under handlers that ask another service, the next slot begins beside it.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

INTERVAL = 0.05
"""Seconds of a batch after which it is looked whether its thread works or waits, and again after as many."""
WORKING = 0.25
"""Share of an interval that a thread which works has a processor at the least, be the machine as busy as it is."""


class Runner(Protocol):
    """A slot, as far as its turn goes."""

    def processor_time(self) -> float:
        """Seconds that what it runs in has had a processor."""


class Turns:
    """Gives the turn to one slot at a time. Used from the event loop only."""

    def __init__(self) -> None:
        self._owner: Runner | None = None
        self._changed = asyncio.Event()
        self._ended = False
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, slot: Runner) -> None:
        """Wait for the turn, unless the slot still has it, or there are no turns any more. Its next batch begins."""
        while self._owner is not None and self._owner is not slot and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        if not self._ended:
            self._owner = slot
            self._look_later(slot)

    def keep(self, slot: Runner) -> None:
        """The slot's batch has ended; if it still has the turn, it keeps it for the next one."""
        if self._owner is slot and self._timer is not None:
            self._timer.cancel()

    def pass_on(self, slot: Runner) -> None:
        """The slot needs the turn no more, if it has it."""
        if self._owner is slot:
            self.keep(slot)
            self._owner = None
            self._changed.set()

    def end(self) -> None:
        """Nobody is to wait any more."""
        self._ended = True
        self._changed.set()

    def _look_later(self, slot: Runner) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(INTERVAL, self._look, slot, loop.time(), slot.processor_time())

    def _look(self, slot: Runner, started: float, worked: float) -> None:
        if slot.processor_time() - worked < WORKING * (asyncio.get_running_loop().time() - started):
            self.pass_on(slot)
        else:
            self._look_later(slot)
