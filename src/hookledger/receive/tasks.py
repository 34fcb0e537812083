"""Shared commits over an asynchronous engine: a few tasks of the event loop take from the line."""

from __future__ import annotations

import asyncio
import logging

from sqlalchemy.util import greenlet_spawn

from hookledger.errors import Unavailable
from hookledger.receive.announce import SHORTEST_GAP
from hookledger.receive.flush import Committer
from hookledger.receive.lane import KEPT, Lane
from hookledger.receive.line import Entry, Line
from hookledger.receive.observer import Observer, tell
from hookledger.receive.waiter import Outcome, settle

logger = logging.getLogger(__name__)


class CommitTasks:
    """As CommitThreads, for an asynchronous engine; belongs to the event loop that it is first used in.

    Args:
        line: where the entries wait.
        committer: commits them, over the synchronous side of the engine.
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
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._lanes: list[Lane] = []
        """Those that no commit uses just now."""
        self._giving_back: asyncio.TimerHandle | None = None
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
        if self._giving_back is not None:
            self._giving_back.cancel()
        await self._give_back(self._lanes)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _commit(self) -> None:
        lane = self._lanes.pop() if self._lanes else self._committer.lane()
        try:
            while entries := self._line.take(*self._bounds):
                # What a loop that is shut down in the middle of a commit leaves behind.
                outcomes: list[Outcome | Exception] = [Unavailable("the receiver is shutting down")] * len(entries)
                try:
                    outcomes = await self._flushed(entries, lane)
                finally:
                    self._finish(entries, outcomes)
        finally:
            self._under_way -= 1
            self._lanes.append(lane)
            if lane.is_warm and self._giving_back is None:
                self._look_again_later()

    def _look_again_later(self) -> None:
        self._giving_back = asyncio.get_running_loop().call_later(KEPT, self._look_for_unused)

    def _look_for_unused(self) -> None:
        self._giving_back = None
        unused = [lane for lane in self._lanes if lane.is_warm and lane.unused_for >= KEPT]
        if unused:
            self._lanes = [lane for lane in self._lanes if lane not in unused]
            self._keep(asyncio.get_running_loop().create_task(self._give_back(unused)))
        if any(lane.is_warm for lane in self._lanes):
            self._look_again_later()

    async def _give_back(self, lanes: list[Lane]) -> None:
        for lane in lanes:
            await greenlet_spawn(lane.give_back)

    async def _flushed(self, entries: list[Entry], lane: Lane) -> list[Outcome | Exception]:
        try:
            return await greenlet_spawn(self._committer.flush, entries, lane)
        except Exception as error:
            logger.exception("an unforeseen error while committing %d requests", len(entries))
            return [error] * len(entries)

    def _finish(self, entries: list[Entry], outcomes: list[Outcome | Exception]) -> None:
        self._line.release(entries)
        if self._observer is not None:
            tell(self._observer, entries, outcomes)
        if "recorded" in outcomes:
            self._hint()
        settle(entries, outcomes, asyncio.get_running_loop())

    def _hint(self) -> None:
        self._came = True
        if not self._announcing:
            self._announcing = True
            self._keep(asyncio.get_running_loop().create_task(self._announce()))

    async def _announce(self) -> None:
        try:
            while self._came:
                self._came = False
                await greenlet_spawn(self._committer.announce)
                # Hints that come faster than this share one.
                await asyncio.sleep(SHORTEST_GAP)
        finally:
            self._announcing = False
