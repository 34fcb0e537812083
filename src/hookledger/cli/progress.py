"""Progress of long work on standard error: a bar on a terminal, now and then a plain line in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hookledger.cli.errors import say

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

LINE_EVERY = 5.0
"""Seconds between two lines of a log."""


class Progress:
    """Shows how far work is.

    Args:
        what: is being done, in a word or two.
        total: how much there is; None where that is not known.
        quiet: show nothing.
    """

    def __init__(self, what: str, total: int | None = None, *, quiet: bool = False) -> None:
        self._what = what
        self._total = total
        self._quiet = quiet
        self._rich: RichProgress | None = None
        self._task: TaskID | None = None
        self._next = time.monotonic() + LINE_EVERY
        self._told: str | None = None

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            columns = (
                TextColumn("{task.description}", markup=False),
                *([BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()] if self._total else []),
                TextColumn("{task.fields[note]}", markup=False),
            )
            self._rich = RichProgress(*columns, console=Console(stderr=True))
            self._rich.start()
            self._task = self._rich.add_task(self._what, total=self._total, note="")
        return self

    def show(self, done: int, note: str = "") -> None:
        """So much is done.

        Args:
            done: of the total.
            note: anything more.
        """
        if self._rich is not None and self._task is not None:
            self._rich.update(self._task, completed=done, note=note)
            return
        now = time.monotonic()
        line = f"{self._what}: {done:,}{f' of {self._total:,}' if self._total else ''}{f', {note}' if note else ''}"
        if not self._quiet and now >= self._next and line != self._told:
            self._next = now + LINE_EVERY
            self._told = line
            say(line)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._rich is not None:
            self._rich.stop()
