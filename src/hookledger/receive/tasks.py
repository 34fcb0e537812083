"""Shared commits over an asynchronous engine: a few tasks of the event loop take from the line."""

from __future__ import annotations

import asyncio
import logging

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from hookledger.ledger.repository import Repository
from hookledger.receive.announce import SHORTEST_GAP, announce
from hookledger.receive.flush import flush
from hookledger.receive.line import Entry, Line, Outcome

logger = logging.getLogger(__name__)


class CommitTasks:
    """As CommitThreads, for an asynchronous engine; belongs to the event loop that it is first used in.

    Args:
        line: where the entries wait.
        engine: asynchronous.
        repository: the ledger.
        commits: how many commits may be under way at a time.
        most, most_bytes: the bounds of one commit.
    """

    def __init__(
        self, line: Line, engine: AsyncEngine, repository: Repository, *, commits: int, most: int, most_bytes: int
    ) -> None:
        self._line = line
        self._engine = engine
        self._repository = repository
        self._commits = commits
        self._bounds = (most, most_bytes)
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._announcing = False
        self._came = False

    def gathered(self) -> None:
        """An entry has joined the line: make sure that somebody takes it."""
        if self._under_way < self._commits:
            self._under_way += 1
            self._keep(asyncio.get_running_loop().create_task(self._commit()))

    async def aclose(self) -> None:
        """Wait until the commits that are under way have ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _commit(self) -> None:
        try:
            while entries := self._line.take(*self._bounds):
                outcomes = await self._flushed(entries)
                self._line.release(entries)
                if "recorded" in outcomes:
                    self._hint()
                for entry, outcome in zip(entries, outcomes, strict=True):
                    entry.finish(entry, outcome)
        finally:
            self._under_way -= 1

    async def _flushed(self, entries: list[Entry]) -> list[Outcome | Exception]:
        try:
            return await greenlet_spawn(flush, self._engine.sync_engine.connect, self._repository, entries)
        except Exception as error:
            logger.exception("an unforeseen error while committing %d requests", len(entries))
            return [error] * len(entries)

    def _hint(self) -> None:
        self._came = True
        if not self._announcing:
            self._announcing = True
            self._keep(asyncio.get_running_loop().create_task(self._announce()))

    async def _announce(self) -> None:
        try:
            while self._came:
                self._came = False
                try:
                    await greenlet_spawn(self._announce_once)
                except (SQLAlchemyError, OSError) as error:
                    logger.debug("the hint to the workers was not sent, they will poll: %s", error)
                # Hints that come faster than this share one.
                await asyncio.sleep(SHORTEST_GAP)
        finally:
            self._announcing = False

    def _announce_once(self) -> None:
        connection: Connection
        with self._engine.sync_engine.connect() as connection:
            announce(connection, self._repository.schema)
