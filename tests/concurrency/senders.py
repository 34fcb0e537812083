"""Senders that try every event again until it is acknowledged, as providers do."""

from __future__ import annotations

import http.client
import itertools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

Send = Callable[[bytes, str], int]
"""Sends a body as an event, and gives the status."""

GONE = (OSError, http.client.HTTPException)
PAUSE = 0.02
"""Seconds before an event is sent again, so that the senders do not keep the receiver from starting."""


class Senders:
    """Sends events from several threads until the end of the block.

    Args:
        send: may raise when the receiver is gone.
        threads: how many.
        name: what the event ids begin with.
    """

    def __init__(self, send: Send, *, threads: int = 8, name: str = "evt") -> None:
        self.acknowledged: dict[str, bytes] = {}
        self.statuses: set[int] = set()
        self.refused = 0
        self._send = send
        self._name = name
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._when: tuple[int, Callable[[], None]] | None = None
        self._fired = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]

    def at(self, more: int, action: Callable[[], None]) -> None:
        """Do something the moment that so many more events are acknowledged, in the thread that sees the answer;
        return when it is done."""
        self._fired.clear()
        with self._lock:
            self._when = (len(self.acknowledged) + more, action)
        if not self._fired.wait(120):
            raise AssertionError(f"no {more} more acknowledgements; statuses: {self.statuses}")

    def _run(self) -> None:
        while not self._ending.is_set():
            event = f"{self._name}-{next(self._numbers)}"
            body = f'{{"id":"{event}"}}'.encode() + b"\x00\xff\r\n" * 20
            while not self._ending.is_set():
                try:
                    status = self._send(body, event)
                except GONE:
                    self._ending.wait(PAUSE)
                    continue
                self.statuses.add(status)
                if status == 200:
                    self._acknowledge(event, body)
                    break
                self.refused += 1
                self._ending.wait(PAUSE)

    def _acknowledge(self, event: str, body: bytes) -> None:
        with self._lock:
            self.acknowledged[event] = body
            if self._when is None or len(self.acknowledged) < self._when[0]:
                return
            action, self._when = self._when[1], None
        action()
        self._fired.set()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(60)
