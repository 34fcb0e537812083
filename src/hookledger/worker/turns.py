"""Which slot may begin a batch, where the slots are threads of one interpreter (D12).

Threads that do the work of fast handlers only take the interpreter from each other: measured, four of them settle less
than one. So one slot goes on alone, batch after batch, for as long as its thread is at work. When it mostly waits, as
under handlers that ask another service, the next slot begins beside it.
"""

from __future__ import annotations

import asyncio

from hookledger.worker.slot import Slot

INTERVAL = 0.05
"""Seconds of a batch after which it is looked whether its thread works or waits, and again after as many."""
WORKING = 0.25
"""Share of an interval that a thread which works has a processor at the least, be the machine as busy as it is."""


class Turns:
    """Gives the turn to one slot at a time. Used from the event loop only.

    Args:
        everybody: whether all slots always have it, as on an asynchronous engine, where they share one thread.
    """

    def __init__(self, *, everybody: bool) -> None:
        self._everybody = everybody
        self._free = asyncio.Lock()
        self._owner: Slot | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, slot: Slot) -> None:
        """Wait for the turn, unless the slot still has it. Its next batch begins."""
        if self._everybody:
            return
        if self._owner is not slot:
            await self._free.acquire()
            self._owner = slot
        self._look_later(slot)

    def keep(self, slot: Slot) -> None:
        """The slot's batch has ended; if it still has the turn, it keeps it for the next one."""
        if self._owner is slot and self._timer is not None:
            self._timer.cancel()

    def pass_on(self, slot: Slot) -> None:
        """The slot needs the turn no more, if it has it."""
        if self._owner is slot:
            self.keep(slot)
            self._owner = None
            self._free.release()

    def _look_later(self, slot: Slot) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(INTERVAL, self._look, slot, loop.time(), slot.processor_time())

    def _look(self, slot: Slot, started: float, worked: float) -> None:
        if slot.processor_time() - worked < WORKING * (asyncio.get_running_loop().time() - started):
            self.pass_on(slot)
        else:
            self._look_later(slot)
