"""A command that takes a while: it tells how far it is, and Ctrl-C ends it between two steps."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType, TracebackType
from typing import Self

from hookledger.cli.errors import say

BETWEEN = 0.1
BETWEEN_LINES = 10.0
"""Seconds between two tellings: on a terminal, and as lines of a log."""


class Going:
    """While this is open, the first Ctrl-C or SIGTERM asks the work to end after the step it is at; the second ends it
    at once."""

    def __init__(self) -> None:
        self.interrupted = False
        self._before: dict[signal.Signals, object] = {}
        self._told_at = time.monotonic()
        self._written = 0

    def stopping(self) -> bool:
        """Whether the work is to end."""
        return self.interrupted

    def tell(self, text: str) -> None:
        """Say how far it is, not too often: in one line that changes, or in lines of a log."""
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        if now - self._told_at < (BETWEEN if terminal else BETWEEN_LINES):
            return
        self._told_at = now
        if terminal:
            print(f"\r{text.ljust(self._written)}", end="", file=sys.stderr, flush=True)
            self._written = len(text)
        else:
            say(text)

    def clear(self) -> None:
        """Take the line that changes away."""
        if self._written:
            print(f"\r{' ' * self._written}\r", end="", file=sys.stderr, flush=True)
            self._written = 0

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.clear()
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
