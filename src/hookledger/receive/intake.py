"""The intake: what an adapter calls with a request, and what it gets its answer from (D1, D14)."""

from __future__ import annotations

import asyncio
import logging
import os
import time
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import StaticPool

from hookledger.errors import HookledgerError, Refused, SetupError, Unavailable
from hookledger.http import Request, Response
from hookledger.inbox import Inbox
from hookledger.ledger.repository import Repository
from hookledger.receive.accept import Accepted
from hookledger.receive.arrivals import Arrivals, too_late
from hookledger.receive.flush import Committer
from hookledger.receive.line import Entry, Line
from hookledger.receive.observer import Observer
from hookledger.receive.prepare import Preparation
from hookledger.receive.quarantine import Keeper, QuarantineWriter
from hookledger.receive.settings import IntakeSettings
from hookledger.receive.tasks import CommitTasks
from hookledger.receive.threads import CommitThreads
from hookledger.receive.verifying import VerifyThreads
from hookledger.receive.waiter import LoopWaiter, Settled, ThreadWaiter

logger = logging.getLogger(__name__)

_of_the_parent: list[object] = []


class Intake:
    """Verifies requests, commits them in shared commits, and answers.

    Args:
        inbox: the sources that may send.
        engine: of the database with the ledger; `postgresql+psycopg`, synchronous or asynchronous.
        settings: bounds; the defaults suit most.
        observer: is told what becomes of requests.

    Raises:
        SetupError: for an engine of another driver or one whose connection is shared, or an inbox without sources.
    """

    def __init__(
        self,
        inbox: Inbox,
        engine: Engine | AsyncEngine,
        settings: IntakeSettings | None = None,
        *,
        observer: Observer | None = None,
    ) -> None:
        if engine.dialect.name != "postgresql" or engine.dialect.driver != "psycopg":
            raise SetupError(
                f"the engine uses {engine.dialect.name}+{engine.dialect.driver}: "
                "make it with a URL that begins with postgresql+psycopg://"
            )
        if isinstance(engine.pool, StaticPool):
            raise SetupError(
                "the engine's StaticPool gives all threads one connection, so one would commit or undo what another "
                "writes: make the engine with another pool"
            )
        if not inbox.sources:
            raise SetupError("the inbox has no sources: give it one, e.g. Inbox(stripe(secrets=...))")
        self.inbox = inbox
        self.settings = settings or IntakeSettings()
        self.repository = Repository.of(inbox.schema)
        self._engine = engine
        self._observer = observer
        self._closed = False
        self._open()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=partial(_after_fork, weakref.ref(self)))

    def _open(self) -> None:
        settings, engine = self.settings, self._engine
        self._keeper: Keeper | None = None
        if settings.quarantine is not None:
            core = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
            writer = QuarantineWriter(core, self.inbox.schema, settings.quarantine)
            self._keeper = Keeper(writer, settings.quarantine, is_async=isinstance(engine, AsyncEngine))
        self._preparation = Preparation(self.inbox, settings, self._observer, self._keeper)
        self._arrivals: Arrivals | None = None
        self._line = Line(settings.max_waiting, settings.max_waiting_bytes)
        self._verifying = VerifyThreads(settings.verifying, settings.max_waiting, settings.max_waiting_bytes)
        bounds: dict[str, Any] = {
            "commits": settings.commits,
            "most": settings.max_commit_requests,
            "most_bytes": settings.max_commit_bytes,
            "observer": self._observer,
        }
        self._commits: CommitThreads | CommitTasks
        if isinstance(engine, AsyncEngine):
            committer = Committer(engine.sync_engine, self.repository, cut_after=settings.cut_after)
            self._commits = CommitTasks(self._line, committer, **bounds)
        else:
            committer = Committer(engine, self.repository, cut_after=settings.cut_after)
            self._commits = CommitThreads(self._line, committer, **bounds)

    @property
    def max_body_bytes(self) -> int:
        """The largest body that is taken, in bytes."""
        return self.settings.max_body_bytes

    def admits(self, source: str) -> Response | None:
        """A look before the body is read: the refusal of an unknown source or of a full line, or None."""
        try:
            self.inbox.source(source)
            if self._line.full:
                raise Unavailable("the waiting line is full")
        except Refused as error:
            return self.answer(error, source=source)
        return None

    async def receive(self, request: Request) -> Response:
        """Answer a request from an event loop, with either kind of engine."""
        loop = asyncio.get_running_loop()
        if self._may_wait(request):
            outcome = await self._verified_apart(request, loop)
        else:
            arrivals = self._arrivals
            if arrivals is None or arrivals.loop is not loop:
                arrivals = self._arrivals = self._new_arrivals(loop)
            outcome = await arrivals.add(request).done
        return self._concluded(request, outcome)

    def receive_blocking(self, request: Request) -> Response:
        """Answer a request from a thread; needs a synchronous engine.

        Raises:
            SetupError: with an asynchronous engine.
        """
        if isinstance(self._commits, CommitTasks):
            raise SetupError("a threaded server needs a synchronous engine: make it with create_engine")
        end = time.monotonic() + self.settings.answer_within
        if self._may_wait(request):
            try:
                prepared = self._verifying.run_blocking(
                    partial(self._prepare, request), len(request.body), self.settings.answer_within
                )
            except Unavailable as error:
                return self.answer(error, source=request.source)
        else:
            prepared = self._prepare(request)
        if isinstance(prepared, Response):
            return prepared
        waiter = ThreadWaiter()
        self._join([Entry(prepared, waiter)])
        return self._concluded(request, waiter.wait(end - time.monotonic()) or too_late())

    def answer(self, error: HookledgerError, *, source: str, head: Request | None = None) -> Response:
        """The response to a request that was refused. The sender learns the status, the log the reason.

        Args:
            error: why.
            source: as it was named.
            head: the request without the body that was not read, where it is worth keeping.
        """
        known = head if source in self.inbox.sources else None
        return self._preparation.answer(error, source=source, request=known)

    async def aclose(self) -> None:
        """As `close`, from an event loop."""
        self._closed = True
        self._verifying.close()
        if self._keeper is not None:
            await self._keeper.aclose()
        if isinstance(self._commits, CommitTasks):
            await self._commits.aclose()
        else:
            await asyncio.get_running_loop().run_in_executor(None, self.close)

    def close(self) -> None:
        """Take no more, and wait, for `answer_within` at the most, until what was taken is committed; then the engine
        may be disposed of. With an asynchronous engine only `aclose` waits."""
        self._closed = True
        self._verifying.close()
        if self._keeper is not None:
            self._keeper.close()
        if isinstance(self._commits, CommitThreads):
            self._commits.close(self.settings.answer_within)

    async def _verified_apart(self, request: Request, loop: asyncio.AbstractEventLoop) -> Settled:
        end = loop.time() + self.settings.answer_within
        if self._keeper is not None:
            self._keeper.loop = loop
        try:
            prepared = await self._verifying.run(
                partial(self._prepare, request), len(request.body), self.settings.answer_within
            )
        except Unavailable as error:
            return error
        if isinstance(prepared, Response):
            return prepared
        waiter = LoopWaiter(loop)
        deadline = loop.call_at(end, waiter.settle, too_late())
        try:
            self._join([Entry(prepared, waiter)])
            return await waiter.done
        finally:
            deadline.cancel()

    def _new_arrivals(self, loop: asyncio.AbstractEventLoop) -> Arrivals:
        return Arrivals(loop, self._preparation.prepare, self._join, self.settings.answer_within)

    def _join(self, entries: Sequence[Entry]) -> None:
        """Let entries into the line; those that cannot be recorded are settled at once."""
        refused = [(entry, error) for error in [self._not_now()] if error for entry in entries]
        for entry, error in refused or self._line.join(entries):
            entry.waiter.settle(error)
        if isinstance(self._commits, CommitTasks):
            self._commits.gathered()

    def _not_now(self) -> Unavailable | None:
        """Why nothing can be committed, if nothing can."""
        if self._closed:
            return Unavailable("the receiver is shutting down")
        if isinstance(self._commits, CommitThreads):
            try:
                self._commits.start()
            except Unavailable as error:
                return error
        return None

    def _may_wait(self, request: Request) -> bool:
        """Whether verifying waits for keys or for a user's function, and must not hold up everybody else."""
        source = self.inbox.sources.get(request.source)
        return source is not None and source.needs_network

    def _prepare(self, request: Request) -> Accepted | Response:
        return self._preparation.prepare([request])[0]

    def _concluded(self, request: Request, outcome: Settled) -> Response:
        if isinstance(outcome, Response):
            return outcome
        if isinstance(outcome, HookledgerError):
            return self.answer(outcome, source=request.source)
        if isinstance(outcome, Exception):
            return self._preparation.unavailable()
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s a request of %s", outcome, request.source)
        return self.inbox.source(request.source).accepted


def _after_fork(reference: weakref.ref[Intake]) -> None:
    """Begin anew in the child of a fork: the threads are the parent's, and so are the connections of the pool.

    https://docs.sqlalchemy.org/en/20/core/pooling.html#using-connection-pools-with-multiprocessing-or-os-fork
    """
    intake = reference()
    if intake is None:
        return
    engine = intake._engine
    core = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
    core.dispose(close=False)
    # Never collected: that would end a session of the parent, over the socket that both have.
    _of_the_parent.append(intake._commits)
    intake._open()
