"""Who waits for the outcome of a request: a coroutine of an event loop, or a thread of a server."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from hookledger.http import Response

if TYPE_CHECKING:
    from hookledger.receive.line import Entry

Outcome = Literal["recorded", "repeated"]
Settled = Outcome | Exception | Response


class Waiter(Protocol):
    """Waits for one request.

    Attributes:
        loop: the event loop that `settle` must be called in; None for any thread.
    """

    loop: asyncio.AbstractEventLoop | None

    @property
    def gone(self) -> bool:
        """Whether nobody waits any more: what was not begun need not be done."""
        ...

    def settle(self, outcome: Settled) -> None:
        """Tell the outcome; only the first one counts."""
        ...


class LoopWaiter:
    """A coroutine.

    Args:
        loop: the one that it runs in.
    """

    __slots__ = ("done", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop: asyncio.AbstractEventLoop | None = loop
        self.done: asyncio.Future[Settled] = loop.create_future()

    @property
    def gone(self) -> bool:
        """See `Waiter`; also true for a coroutine that was cancelled."""
        return self.done.done()

    def settle(self, outcome: Settled) -> None:
        """See `Waiter`."""
        if not self.done.done():
            self.done.set_result(outcome)


class ThreadWaiter:
    """A thread."""

    __slots__ = ("_came", "_outcome", "gone", "loop")

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.gone = False
        self._came = threading.Event()
        self._outcome: Settled | None = None

    def settle(self, outcome: Settled) -> None:
        """See `Waiter`."""
        self._outcome = outcome
        self._came.set()

    def wait(self, seconds: float) -> Settled | None:
        """The outcome, or None if it does not come in time; nobody waits then."""
        self._came.wait(seconds)
        self.gone = True
        return self._outcome


def settle(
    entries: Sequence[Entry], outcomes: Sequence[Settled], here: asyncio.AbstractEventLoop | None = None
) -> None:
    """Tell outcomes to those who wait; each other event loop is woken once.

    Args:
        entries: of the requests.
        outcomes: in the order of the entries.
        here: the event loop that this runs in, if it is one.
    """
    elsewhere: dict[asyncio.AbstractEventLoop, list[tuple[Waiter, Settled]]] = {}
    for entry, outcome in zip(entries, outcomes, strict=True):
        waiter = entry.waiter
        if waiter.loop is None or waiter.loop is here:
            waiter.settle(outcome)
        else:
            elsewhere.setdefault(waiter.loop, []).append((waiter, outcome))
    for loop, those in elsewhere.items():
        # A loop may have been closed meanwhile: then nobody waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle_all, those)


def _settle_all(those: list[tuple[Waiter, Settled]]) -> None:
    for waiter, outcome in those:
        waiter.settle(outcome)
