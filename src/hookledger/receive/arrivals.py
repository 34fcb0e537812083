"""Requests that come in one turn of an event loop are prepared together, one stage after the other.

Python code that does one thing many times runs about twice as fast as code that changes, for each request, between
the server's, the framework's and ours: the processor's caches hold the one and not the other.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from hookledger.errors import Unavailable
from hookledger.http import Request, Response
from hookledger.receive.accept import Accepted
from hookledger.receive.line import Entry
from hookledger.receive.waiter import LoopWaiter

logger = logging.getLogger(__name__)

MOST = 64
MOST_BYTES = 1024 * 1024
"""Bounds of what is prepared in one turn: others of the loop have theirs in between."""

Prepare = Callable[[Sequence[Request]], list[Accepted | Response]]
Join = Callable[[Sequence[Entry]], None]


class Arrivals:
    """The requests of one event loop that have arrived and are not prepared yet, and the deadlines of all.

    Args:
        loop: the event loop; all is called in it.
        prepare: verifies and reads requests.
        join: lets what is to be recorded into the line; settles what there is no room for.
        answer_within: seconds from the arrival of a request to its answer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, prepare: Prepare, join: Join, answer_within: float) -> None:
        self.loop = loop
        self._prepare = prepare
        self._join = join
        self._answer_within = answer_within
        self._came: deque[tuple[Request, LoopWaiter]] = deque()
        # All wait equally long, so one timer, for the first of them, is enough.
        self._deadlines: deque[tuple[float, LoopWaiter]] = deque()

    def add(self, request: Request) -> LoopWaiter:
        """Take a request; it is prepared at the end of this turn of the loop."""
        waiter = LoopWaiter(self.loop)
        if not self._came:
            self.loop.call_soon(self._turn)
        self._came.append((request, waiter))
        end = self.loop.time() + self._answer_within
        if not self._deadlines:
            self.loop.call_at(end, self._look)
        self._deadlines.append((end, waiter))
        return waiter

    def _turn(self) -> None:
        requests, waiters = self._take()
        if self._came:
            self.loop.call_soon(self._turn)
        try:
            prepared = self._prepare(requests)
        except Exception as error:
            logger.exception("an unforeseen error while preparing %d requests", len(requests))
            prepared = []
            for waiter in waiters:
                waiter.settle(error)
        entries: list[Entry] = []
        for waiter, each in zip(waiters, prepared, strict=False):
            if isinstance(each, Response):
                waiter.settle(each)
            else:
                entries.append(Entry(each, waiter))
        if entries:
            self._join(entries)

    def _take(self) -> tuple[list[Request], list[LoopWaiter]]:
        requests: list[Request] = []
        waiters: list[LoopWaiter] = []
        size = 0
        while self._came and len(requests) < MOST and size < MOST_BYTES:
            request, waiter = self._came.popleft()
            if not waiter.gone:
                requests.append(request)
                waiters.append(waiter)
                size += len(request.body)
        return requests, waiters

    def _look(self) -> None:
        now = self.loop.time()
        while self._deadlines:
            end, waiter = self._deadlines[0]
            if not waiter.gone:
                if end > now:
                    self.loop.call_at(end, self._look)
                    return
                waiter.settle(too_late())
            self._deadlines.popleft()


def too_late() -> Unavailable:
    """What a request is told whose time is up."""
    return Unavailable("the database did not commit the event in time")
