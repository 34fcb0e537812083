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
from hookledger.receive.lane import KEPT, Lane
from hookledger.receive.line import Entry, Line
from hookledger.receive.observer import Observer, tell
from hookledger.receive.waiter import Outcome, settle

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
        observer: is told of what is committed.
    """

    def __init__(
        self,
        line: Line,
        committer: Committer,
        *,
        commits: int,
        most: int,
        most_bytes: int,
        observer: Observer | None = None,
    ) -> None:
        self._line = line
        self._committer = committer
        self._commits = commits
        self._bounds = (most, most_bytes)
        self._observer = observer
        self._lock = threading.Lock()
        self._committing: list[threading.Thread] = []
        self._announcing: threading.Thread | None = None
        self._ending = False
        self._came = threading.Event()

    def start(self) -> None:
        """See that there are threads, before an entry joins the line.

        Raises:
            Unavailable: if the process may start none.
        """
        if len(self._committing) < self._commits or self._announcing is None:
            self._start()

    def close(self, seconds: float) -> None:
        """End the threads once the line is empty, and wait for that so long at the most."""
        self._ending = True
        self._came.set()
        self._line.wake()
        end = time.monotonic() + seconds
        for thread in [*self._committing, *([self._announcing] if self._announcing else [])]:
            thread.join(max(0.0, end - time.monotonic()))

    def _start(self) -> None:
        with self._lock:
            try:
                while len(self._committing) < self._commits:
                    name = f"hookledger-commit-{len(self._committing)}"
                    thread = threading.Thread(target=self._commit, name=name, daemon=True)
                    thread.start()
                    self._committing.append(thread)
                if self._announcing is None:
                    thread = threading.Thread(target=self._announce, name="hookledger-announce", daemon=True)
                    thread.start()
                    self._announcing = thread
            except RuntimeError as error:
                if not self._committing:
                    raise Unavailable(f"no thread to commit in can be started: {error}") from error

    def _commit(self) -> None:
        lane = self._committer.lane()
        while True:
            entries = self._line.take_or_wait(*self._bounds, KEPT if lane.is_warm else PATIENCE)
            if entries:
                self._finish(entries, self._flushed(entries, lane))
                continue
            # What it was woken for, another thread may have taken.
            if self._ending or lane.unused_for >= KEPT:
                lane.give_back()
            if self._ending:
                return

    def _flushed(self, entries: list[Entry], lane: Lane) -> list[Outcome | Exception]:
        try:
            return self._committer.flush(entries, lane)
        except Exception as error:
            logger.exception("an unforeseen error while committing %d requests", len(entries))
            return [error] * len(entries)

    def _finish(self, entries: list[Entry], outcomes: list[Outcome | Exception]) -> None:
        self._line.release(entries)
        if self._observer is not None:
            tell(self._observer, entries, outcomes)
        if "recorded" in outcomes:
            self._came.set()
        settle(entries, outcomes)

    def _announce(self) -> None:
        while True:
            self._came.wait()
            if self._ending:
                return
            self._came.clear()
            self._committer.announce()
            # Hints that come faster than this share one.
            time.sleep(SHORTEST_GAP)
