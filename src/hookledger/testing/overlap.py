"""Two workers at the same time, in an order that repeats: one goes on while the other waits (D6, D8)."""

from __future__ import annotations

import asyncio
import threading
import time

from sqlalchemy.util import await_only

from hookledger.testing.director import Kind, Observer, backend_of
from hookledger.worker.transaction import HandlerConnection

PAUSE = 0.001
LOOK_AFTER = 0.004
"""Seconds without a step of the other worker after which it is looked whether it waits for a lock of this one."""
GIVE_UP_AFTER = 10.0
"""Seconds after which both go on: the other waits for something that the server does not know of, such as a lock of
Python's. Many more than a step takes on a busy machine."""


class Overlap:
    """Hands the turn from one worker to the other before statements of their handlers and before their commits.

    When the one that has the turn waits for a lock of the other, both go on as they can: only one of them can.

    Args:
        before: before which of its statements the first worker hands the turn over, to have it again when the other has
            ended; None: both hand it over before each.
        observer: sees who is blocked.
        asynchronous: whether the workers run in an event loop.
    """

    def __init__(self, before: int | None, observer: Observer, *, asynchronous: bool) -> None:
        self._before = before
        self._observer = observer
        self._asynchronous = asynchronous
        self._turn = 0
        self._free = False
        self._ended = [False, False]
        self._points = [0, 0]
        self._backends: list[int | None] = [None, None]
        self._steps = 0
        self._changed = threading.Condition()

    @property
    def second_may_start(self) -> bool:
        """Whether the first worker has handed over for the first time, or never will."""
        return self._turn == 1 or self._free or self._ended[0]

    def ended(self, who: int) -> None:
        """A worker has nothing left to do."""
        with self._changed:
            self._ended[who] = True
            self._turn = 1 - who
            self._steps += 1
            self._changed.notify_all()

    def before_statement(self, who: int, connection: HandlerConnection) -> None:
        """A handler of a worker is about to run a statement."""
        self._point(who, connection)

    def before_commit(self, who: int, connection: HandlerConnection, kind: Kind) -> None:
        """A worker is about to commit."""
        if kind is Kind.WORK:
            self._point(who, connection)
        else:
            # From here on it may wait for a lock, and is to be looked at.
            self._backends[who] = backend_of(connection)

    def _point(self, who: int, connection: HandlerConnection) -> None:
        other = 1 - who
        with self._changed:
            self._backends[who] = backend_of(connection)
            self._points[who] += 1
            self._steps += 1
            hands_over = self._before is None or (who == 0 and self._points[0] == self._before)
            if hands_over and self._turn == who and not self._ended[other]:
                self._turn = other
            self._changed.notify_all()
        self._wait_for_turn(who)

    def _wait_for_turn(self, who: int) -> None:
        seen, since = self._steps, time.monotonic()
        while not self._free and self._turn != who and not self._ended[1 - who]:
            self._pause()
            if self._steps != seen:
                seen, since = self._steps, time.monotonic()
                continue
            waited = time.monotonic() - since
            backend = self._backends[1 - who]
            if waited > GIVE_UP_AFTER or (
                waited > LOOK_AFTER and backend is not None and self._observer.is_blocked(backend)
            ):
                self._free = True

    def _pause(self) -> None:
        if self._asynchronous:
            await_only(asyncio.sleep(PAUSE))
        else:
            with self._changed:
                self._changed.wait(PAUSE)
