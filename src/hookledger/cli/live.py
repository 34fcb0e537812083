"""What changes while a command waits: one line that is written over on a terminal, now and then a line in a log."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import Self

from hookledger.cli.errors import one_line

SECONDS_BETWEEN_LINES = 10.0


class Live:
    """Progress on standard error. On a terminal the line is gone at the end."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._next = 0.0
        self._last = ""

    def show(self, text: str) -> None:
        """Show how it stands."""
        line = one_line(text)
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{line[:width]}")
            sys.stderr.flush()
            self._last = line
        elif line != self._last and time.monotonic() >= self._next:
            self._next = time.monotonic() + SECONDS_BETWEEN_LINES
            self._last = line
            print(line, file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_terminal and self._last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
