"""A command that takes a while: it tells how far it is, and Ctrl-C ends it between two steps."""

from __future__ import annotations

import signal
import sys
from types import FrameType, TracebackType
from typing import Any, Self

from hookledger.cli.errors import say
from hookledger.cli.live import Live


class Going:
    """While this is open, the first Ctrl-C or SIGTERM asks the work to end after the step it is at; the second ends it
    at once."""

    def __init__(self) -> None:
        self.interrupted = False
        self._live = Live()
        self._before: dict[signal.Signals, Any] = {}

    def stopping(self) -> bool:
        """Whether the work is to end."""
        return self.interrupted

    def tell(self, text: str) -> None:
        """Say how far it is."""
        self._live.show(text)

    def say(self, text: str) -> None:
        """Say something that stays, on a line of its own."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
        say(text)

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._on_signal)
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, traceback)
        for number, before in self._before.items():
            signal.signal(number, before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
