"""How far the demo is: a bar on a terminal, plain lines elsewhere; on standard error in both cases."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, Self, TextIO

LINES = 10
"""How many plain lines tell of the progress, from nothing to all."""


class Progress(Protocol):
    """What the demo tells."""

    def begin(self, requests: int, events: int) -> None:
        """Sending begins: how many requests there are, and how many different events in them."""

    def update(self, sent: int, settled: int) -> None:
        """So many requests were acknowledged, so many events are settled."""

    def note(self, text: str) -> None:
        """Something happened."""


class Lines(AbstractContextManager["Lines"]):
    """Plain lines, for pipes and logs."""

    def __init__(self, output: TextIO | None = None) -> None:
        self._output = output or sys.stderr
        self._requests = self._events = self._told = 0

    def begin(self, requests: int, events: int) -> None:
        self._requests, self._events = requests, events

    def update(self, sent: int, settled: int) -> None:
        reached = LINES * (sent + settled) // (self._requests + self._events)
        if reached > self._told:
            self._told = reached
            self.note(f"sent {sent:,} of {self._requests:,}, settled {settled:,} of {self._events:,}")

    def note(self, text: str) -> None:
        print(text, file=self._output, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None


class Bars(AbstractContextManager["Bars"]):
    """Two bars that grow, one of what is sent and one of what is settled; notes appear above them."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description:<8}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._sent = self._progress.add_task("sent", total=None, visible=False)
        self._settled = self._progress.add_task("settled", total=None, visible=False)

    def begin(self, requests: int, events: int) -> None:
        self._progress.reset(self._sent, total=requests, visible=True)
        self._progress.reset(self._settled, total=events, visible=True)

    def update(self, sent: int, settled: int) -> None:
        self._progress.update(self._sent, completed=sent)
        self._progress.update(self._settled, completed=settled)

    def note(self, text: str) -> None:
        self._progress.console.print(text, highlight=False, markup=False)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()


def progress_for_terminal() -> Lines | Bars:
    """Bars if standard error is a terminal, else lines."""
    return Bars() if sys.stderr.isatty() else Lines()
