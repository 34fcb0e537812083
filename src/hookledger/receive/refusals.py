"""What the log says of refused requests: each with its reason, and a flood of them in few lines (D3)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from hookledger.errors import NotVerified, Refused

MOST_LINES = 10
"""Lines of one source and status in a window; the others are counted."""
WINDOW = 10.0
"""Seconds."""


@dataclass(slots=True)
class _Window:
    began: float
    lines: int = 0
    left_out: int = 0


class RefusalLog:
    """Writes why requests were refused.

    Args:
        logger: it is written to.
        known: the names of sources; all other names count as one, as senders may make up any.
        clock: seconds that only grow.
    """

    def __init__(
        self, logger: logging.Logger, known: frozenset[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger = logger
        self._known = known
        self._clock = clock
        self._windows: dict[tuple[str | None, int], _Window] = {}
        self._lock = threading.Lock()

    def tell(self, source: str, error: Refused) -> None:
        """Write a line on one refusal, or count it.

        Args:
            source: as it was named in the URL.
            error: the reason.
        """
        level = logging.WARNING if error.status in {401, 503} else logging.INFO
        if not self._logger.isEnabledFor(level):
            return
        shown = source[:100]
        told, left_out = self._admit(source if source in self._known else None, error.status)
        extra = {"source": shown, "status": error.status}
        if left_out:
            self._logger.log(
                level,
                "refused %d more requests to %r with %d before, which are not logged",
                left_out,
                shown if source in self._known else "unknown sources",
                error.status,
                extra=extra,
            )
        if told:
            if isinstance(error, NotVerified):
                extra["cause"] = error.cause.value
            self._logger.log(level, "refused a request to %r with %d: %s", shown, error.status, error, extra=extra)

    def _admit(self, source: str | None, status: int) -> tuple[bool, int]:
        """Whether to write a line, and how many were left out in the window that has ended."""
        now = self._clock()
        with self._lock:
            window = self._windows.get((source, status))
            left_out = 0
            if window is None or now - window.began >= WINDOW:
                left_out = 0 if window is None else window.left_out
                window = self._windows[(source, status)] = _Window(now)
            if window.lines >= MOST_LINES:
                window.left_out += 1
                return False, 0
            window.lines += 1
            return True, left_out
