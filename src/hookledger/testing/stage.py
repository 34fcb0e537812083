"""Playing sequences on a real database with real workers, each from the same beginning."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from hookledger.engine import create
from hookledger.inbox import Inbox
from hookledger.testing.databases import LedgerDatabase
from hookledger.testing.director import Director, Observer
from hookledger.testing.dying import Death, WorkerDied
from hookledger.testing.given import Given
from hookledger.testing.idle import make_due, read_dead, read_pending
from hookledger.testing.loop import LoopThread
from hookledger.testing.overlap import Overlap
from hookledger.testing.plan import DEATHS, OVERLAPS, Plan, Then
from hookledger.testing.recording import Recorder
from hookledger.testing.reset import Reset
from hookledger.testing.state import plain
from hookledger.worker import Settled, Worker, WorkerSettings

SECONDS_A_ROUND = 60.0
LEAVE_SECONDS = 10.0
LARGEST_BATCH = 500
MOST_PASSES = 25
"""How often what failed is tried again at the end, if its policy allows as much."""
PAUSE = 0.001
NEVER_EARLY = 3600.0
"""Seconds that the handlers of a batch may take: when it is committed must not depend on how busy the machine is."""

CRASHED = " AND last_error IS NULL"


@dataclass(frozen=True)
class Ended:
    """How a sequence ended.

    Args:
        state: what `read_state` gave.
        dead: the deliveries that were given up, or would be, with reason and error.
        ignored: those that no handler takes.
        seen: what the workers did in each round, in words, where that was directed.
    """

    state: Any
    dead: dict[tuple[str, str], str]
    ignored: frozenset[tuple[str, str]]
    seen: tuple[tuple[str, ...], ...]

    def is_as(self, other: Ended) -> bool:
        """Whether both are one end: the same state, and the same deliveries given up."""
        return bool(self.state == other.state) and self.dead.keys() == other.dead.keys()


class Stage:
    """Plays sequences.

    Args:
        database: to play on. At the end it is as it was.
        inbox: the handlers.
        given: the deliveries.
        read_state: gives the state that is to be compared.
        reset: puts back what is not in the database.
    """

    def __init__(
        self,
        database: LedgerDatabase,
        inbox: Inbox,
        given: Sequence[Given],
        read_state: Callable[[Connection], Any],
        reset: Callable[[], Any] | None,
    ) -> None:
        self._database, self._inbox, self._given = database, inbox, given
        self._read_state, self._reset_rest = read_state, reset
        self._asynchronous = any(handler.is_async for handler in inbox.handlers.values())
        self.recorder = Recorder(database.engine, inbox.schema)
        self._open = ExitStack()
        self._settled: list[Settled] = []
        self._working: list[Worker] = []

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            self._reset = opening.enter_context(Reset(self._database.engine, self._inbox.schema))
            opening.enter_context(_quiet())
            self._loop = opening.enter_context(LoopThread())
            self._engines = [self._engine() for _ in range(2)]
            opening.callback(lambda: self._loop.run(self._dispose(), SECONDS_A_ROUND))
            self._observer = Observer(self._connect())
            opening.callback(self._observer.close)
            cores = [each.sync_engine if isinstance(each, AsyncEngine) else each for each in self._engines]
            self._director = Director(cores, self._inbox.schema)
            opening.callback(self._director.close)
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def begin_anew(self) -> None:
        """Put everything back to how it was."""
        self._reset()
        if self._reset_rest is not None:
            self._reset_rest()

    def play(self, plan: Plan) -> Ended:
        """Let a sequence happen from the beginning, and see how it ends.

        Raises:
            TimeoutError: if a handler does not end.
        """
        self.begin_anew()
        self._settled.clear()
        seen: list[tuple[str, ...]] = []
        arrived = 0
        for turn in plan.rounds:
            requests = [self._given[number].accepted for number in turn.arrivals]
            self.recorder.record(requests, arrived if plan.days_apart else None)
            arrived += len(requests)
            seen.append(self._work(turn.then))
        self._finish()
        return self._look(seen)

    def _work(self, then: Then) -> tuple[str, ...]:
        with self._database.engine.begin() as connection:
            # Those that a dead worker had claimed; what failed waits until everything has come.
            make_due(connection, self._inbox.schema, CRASHED)
            waiting = len(read_pending(connection, self._inbox.schema))
        self._director.seen = []
        if then in OVERLAPS and waiting > 1:
            overlap = Overlap(OVERLAPS[then], self._observer, asynchronous=self._asynchronous)
            self._director.script = overlap
            self._run(self._two(overlap, waiting))
        elif then in DEATHS:
            self._director.script = Death(then, self._director, self._observer)
            with contextlib.suppress(WorkerDied):
                self._run(self._one(0, LARGEST_BATCH))
        else:
            self._run(self._one(0, 1 if then is Then.ALONE else LARGEST_BATCH))
        self._director.script = None
        return tuple(self._director.seen)

    def _finish(self) -> None:
        """Try again what failed, until it is settled or given up."""
        for _ in range(MOST_PASSES):
            with self._database.engine.begin() as connection:
                make_due(connection, self._inbox.schema)
                if not read_pending(connection, self._inbox.schema):
                    return
            self._run(self._one(0, LARGEST_BATCH))

    def _look(self, seen: list[tuple[str, ...]]) -> Ended:
        with self._database.engine.connect() as connection:
            dead = {
                (one.source, one.event_id): f"{one.reason}: {one.error}"
                for one in read_dead(connection, self._inbox.schema)
            }
            for waits in read_pending(connection, self._inbox.schema):
                dead[waits.source, waits.event_id] = f"still fails after {waits.attempts} attempts: {waits.last_error}"
            state = plain(self._read_state(connection))
        ignored = frozenset((one.source, one.event_id) for one in self._settled if one.outcome == "ignored")
        return Ended(state, dead, ignored, tuple(seen))

    def _run(self, coroutine: Any) -> None:
        try:
            self._loop.run(coroutine, SECONDS_A_ROUND)
        except TimeoutError:
            # Their locks would be in the way of putting the database back.
            for worker in list(self._working):
                worker.stop(now=True)
            with contextlib.suppress(TimeoutError):
                self._loop.run(self._left(), LEAVE_SECONDS)
            self._observer.end_all()
            raise TimeoutError(
                f"the handlers did not end within {SECONDS_A_ROUND:g} s: most likely one waits for something outside "
                "the database that does not come"
            ) from None

    async def _one(self, who: int, batch: int) -> None:
        settings = WorkerSettings(slots=1, batch=batch, time_budget=NEVER_EARLY, grace=0, listen=False)
        worker = Worker(self._inbox, self._engines[who], settings, observe=self._settled.append)
        self._working.append(worker)
        try:
            await worker.run_until_idle()
        finally:
            self._working.remove(worker)

    async def _left(self) -> None:
        while self._working:  # noqa: ASYNC110
            await asyncio.sleep(PAUSE)

    async def _two(self, overlap: Overlap, waiting: int) -> None:
        async def work(who: int, batch: int) -> None:
            try:
                await self._one(who, batch)
            finally:
                overlap.ended(who)

        half = (waiting + 1) // 2
        first = asyncio.create_task(work(0, half))
        # Looked at again and again, since the worker that tells may run in a thread.
        while not overlap.second_may_start:  # noqa: ASYNC110
            await asyncio.sleep(PAUSE)
        await asyncio.gather(first, work(1, waiting - half))

    def _engine(self) -> Engine | AsyncEngine:
        name = "hookledger testing worker"
        if self._asynchronous:
            return create(self._database.url, asynchronous=True, application_name=name)
        return create(self._database.url, application_name=name)

    async def _dispose(self) -> None:
        for engine in self._engines:
            disposed = engine.dispose()
            if inspect.isawaitable(disposed):
                await disposed

    def _connect(self) -> psycopg.Connection[Any]:
        url = self._database.engine.url.set(drivername="postgresql")
        return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the log of hookledger within the block: it would tell of each failure in hundreds of sequences."""
    logger = logging.getLogger("hookledger")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)
