"""Shared commits over a synchronous engine: a few daemon threads take from the line.

Request threads and event loops only wait for their entry, with a deadline, so that a database that hangs
never holds a request for longer than that. The threads start with the first request, so an engine may be
made before a server forks its processes.
"""

from __future__ import annotations

import logging
import os
import threading
import time

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from hookledger.ledger.repository import Repository
from hookledger.receive.announce import SHORTEST_GAP, announce
from hookledger.receive.flush import flush
from hookledger.receive.line import Entry, Line, Outcome

logger = logging.getLogger(__name__)

PATIENCE = 0.5
"""Seconds a thread waits for an entry before it looks whether it is to end."""


class CommitThreads:
    """Takes entries from a line and commits them over an engine.

    Args:
        line: where the entries wait.
        engine: synchronous.
        repository: the ledger.
        commits: how many commits may be under way at a time.
        most, most_bytes: the bounds of one commit.
    """

    def __init__(
        self, line: Line, engine: Engine, repository: Repository, *, commits: int, most: int, most_bytes: int
    ) -> None:
        self._line = line
        self._engine = engine
        self._repository = repository
        self._commits = commits
        self._bounds = (most, most_bytes)
        self._lock = threading.Lock()
        self._process: int | None = None
        self._ending = False
        self._came = threading.Event()

    def gathered(self) -> None:
        """An entry has joined the line: make sure that somebody takes it."""
        if self._process != os.getpid():
            self._start()

    def close(self) -> None:
        """End the threads once the line is empty."""
        self._ending = True
        self._came.set()

    def _start(self) -> None:
        with self._lock:
            if self._process == os.getpid():
                return
            if self._process is not None:
                # After a fork the connections belong to the parent: leave them alone and open new ones.
                self._engine.dispose(close=False)
            self._process = os.getpid()
            self._came = threading.Event()
            for number in range(self._commits):
                threading.Thread(target=self._commit, name=f"hookledger-commit-{number}", daemon=True).start()
            threading.Thread(target=self._announce, name="hookledger-announce", daemon=True).start()

    def _commit(self) -> None:
        while True:
            entries = self._line.take_or_wait(*self._bounds, PATIENCE)
            if entries:
                self._finish(entries, self._flushed(entries))
            elif self._ending:
                return

    def _flushed(self, entries: list[Entry]) -> list[Outcome | Exception]:
        try:
            return flush(self._engine.connect, self._repository, entries)
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
            try:
                with self._engine.connect() as connection:
                    announce(connection, self._repository.schema)
            except (SQLAlchemyError, OSError) as error:
                logger.debug("the hint to the workers was not sent, they will poll: %s", error)
            # Hints that come faster than this share one.
            time.sleep(SHORTEST_GAP)
