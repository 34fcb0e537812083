"""Shared commits over a synchronous engine: a few daemon threads take from the line.

Request threads and event loops only wait for their entry, with a deadline, so that a database that hangs
never holds a request for longer than that. The threads start with the first request.
"""

from __future__ import annotations

import logging
import threading
import time

from hookledger.errors import Unavailable
from hookledger.receive.announce import SHORTEST_GAP
from hookledger.receive.flush import Committer
from hookledger.receive.line import Entry, Line, Outcome

logger = logging.getLogger(__name__)

PATIENCE = 0.5
"""Seconds a thread waits for an entry before it looks whether it is to end."""


class CommitThreads:
    """Takes entries from a line and commits them in threads.

    Args:
        line: where the entries wait.
        committer: commits them.
        commits: how many commits may be under way at a time.
        most, most_bytes: the bounds of one commit.
    """

    def __init__(self, line: Line, committer: Committer, *, commits: int, most: int, most_bytes: int) -> None:
        self._line = line
        self._committer = committer
        self._commits = commits
        self._bounds = (most, most_bytes)
        self._lock = threading.Lock()
        self._started = 0
        self._announcing = False
        self._ending = False
        self._came = threading.Event()

    def gathered(self) -> None:
        """An entry has joined the line: make sure that somebody takes it.

        Raises:
            Unavailable: if the process may start no thread.
        """
        if self._started < self._commits or not self._announcing:
            self._start()

    def close(self) -> None:
        """End the threads once the line is empty."""
        self._ending = True
        self._came.set()

    def _start(self) -> None:
        with self._lock:
            try:
                while self._started < self._commits:
                    name = f"hookledger-commit-{self._started}"
                    threading.Thread(target=self._commit, name=name, daemon=True).start()
                    self._started += 1
                if not self._announcing:
                    threading.Thread(target=self._announce, name="hookledger-announce", daemon=True).start()
                    self._announcing = True
            except RuntimeError as error:
                if self._started == 0:
                    raise Unavailable(f"no thread to commit in can be started: {error}") from error

    def _commit(self) -> None:
        while True:
            entries = self._line.take_or_wait(*self._bounds, PATIENCE)
            if entries:
                self._finish(entries, self._flushed(entries))
            elif self._ending:
                return

    def _flushed(self, entries: list[Entry]) -> list[Outcome | Exception]:
        try:
            return self._committer.flush(entries)
        except Exception as error:
            logger.exception("an unforeseen error while committing %d requests", len(entries))
            return [error] * len(entries)

    def _finish(self, entries: list[Entry], outcomes: list[Outcome | Exception]) -> None:
        self._line.release(entries)
        if "recorded" in outcomes:
            self._came.set()
        for entry, outcome in zip(entries, outcomes, strict=True):
            entry.finish(entry, outcome)

    def _announce(self) -> None:
        while True:
            self._came.wait()
            if self._ending:
                return
            self._came.clear()
            self._committer.announce()
            # Hints that come faster than this share one.
            time.sleep(SHORTEST_GAP)
