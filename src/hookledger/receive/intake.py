"""The intake: what an adapter calls with a request, and what it gets its answer from (D1, D14)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
import weakref
from dataclasses import replace
from functools import partial

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import StaticPool

from hookledger.errors import (
    BodyConsumed,
    BodyTooLarge,
    ClientGone,
    HookledgerError,
    NotVerified,
    Refused,
    SetupError,
    Unavailable,
)
from hookledger.http import Request, Response
from hookledger.inbox import Inbox
from hookledger.ledger.repository import Repository
from hookledger.receive.accept import Accepted, accept
from hookledger.receive.flush import Committer
from hookledger.receive.line import Entry, Line, Outcome
from hookledger.receive.refusals import RefusalLog
from hookledger.receive.settings import IntakeSettings
from hookledger.receive.tasks import CommitTasks
from hookledger.receive.threads import CommitThreads
from hookledger.receive.verifying import VerifyThreads
from hookledger.sources.diagnosis import LogDiagnosis

logger = logging.getLogger(__name__)

PROBES = frozenset({"GET", "HEAD", "OPTIONS"})
ALLOWED = ("allow", "POST, GET, HEAD, OPTIONS")


class Intake:
    """Verifies requests, commits them in shared commits, and answers.

    Args:
        inbox: the sources that may send.
        engine: of the database with the ledger; `postgresql+psycopg`, synchronous or asynchronous.
        settings: bounds; the defaults suit most.

    Raises:
        SetupError: for an engine of another driver or one whose connection is shared, or an inbox without sources.
    """

    def __init__(self, inbox: Inbox, engine: Engine | AsyncEngine, settings: IntakeSettings | None = None) -> None:
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
        self._closed = False
        self._open()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=partial(_after_fork, weakref.ref(self)))

    def _open(self) -> None:
        settings, engine = self.settings, self._engine
        self._refusals = RefusalLog(logger, frozenset(self.inbox.sources))
        self._diagnosis = LogDiagnosis()
        self._line = Line(settings.max_waiting, settings.max_waiting_bytes)
        self._verifying = VerifyThreads(settings.verifying, settings.max_waiting, settings.max_waiting_bytes)
        bounds = {
            "commits": settings.commits,
            "most": settings.max_commit_requests,
            "most_bytes": settings.max_commit_bytes,
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
        end = loop.time() + self.settings.answer_within
        prepared: Accepted | Response
        if self._may_wait(request):
            try:
                prepared = await self._verifying.run(
                    partial(self._prepare, request), len(request.body), self.settings.answer_within
                )
            except Unavailable as error:
                return self.answer(error, source=request.source)
        else:
            prepared = self._prepare(request)
        if isinstance(prepared, Response):
            return prepared
        done: asyncio.Future[Outcome | Exception] = loop.create_future()

        def settle(outcome: Outcome | Exception) -> None:
            if not done.done():
                done.set_result(outcome)

        def finish(entry: Entry, outcome: Outcome | Exception) -> None:
            if isinstance(self._commits, CommitTasks):
                settle(outcome)
            else:
                # The loop may have been closed meanwhile: then nobody waits.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(settle, outcome)

        entry = Entry(prepared, finish)
        deadline = loop.call_at(end, settle, _too_late())
        try:
            self._join(entry)
            outcome = await done
        except Refused as error:
            outcome = error
        finally:
            deadline.cancel()
            entry.abandoned = True
        return self._concluded(prepared, outcome)

    def receive_blocking(self, request: Request) -> Response:
        """Answer a request from a thread; needs a synchronous engine.

        Raises:
            SetupError: with an asynchronous engine.
        """
        if isinstance(self._commits, CommitTasks):
            raise SetupError("a threaded server needs a synchronous engine: make it with create_engine")
        end = time.monotonic() + self.settings.answer_within
        prepared: Accepted | Response
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
        done = threading.Event()
        results: list[Outcome | Exception] = []

        def finish(entry: Entry, outcome: Outcome | Exception) -> None:
            results.append(outcome)
            done.set()

        entry = Entry(prepared, finish)
        try:
            self._join(entry)
        except Refused as error:
            entry.abandoned = True
            return self._concluded(prepared, error)
        answered = done.wait(max(0.0, end - time.monotonic()))
        entry.abandoned = True
        return self._concluded(prepared, results[0] if answered else _too_late())

    def answer(self, error: HookledgerError, *, source: str) -> Response:
        """The response to a request that was refused. The sender learns the status, the log the reason."""
        extra = {"source": source[:100]}
        if isinstance(error, BodyConsumed):
            logger.error("a request to %r could not be read: %s", source[:100], error, extra=extra)
            return Response(500, str(error).encode())
        if isinstance(error, ClientGone):
            logger.info("the sender to %r broke off; nothing was stored: %s", source[:100], error, extra=extra)
            return Response(400)
        if not isinstance(error, Refused):
            logger.error("a request to %r failed: %s", source[:100], error, extra=extra)
            return self._unavailable()
        self._refusals.tell(source, error)
        if error.status == 503:
            return self._unavailable()
        return Response(error.status)

    async def aclose(self) -> None:
        """As `close`, from an event loop."""
        self._closed = True
        self._verifying.close()
        if isinstance(self._commits, CommitTasks):
            await self._commits.aclose()
        else:
            await asyncio.get_running_loop().run_in_executor(None, self.close)

    def close(self) -> None:
        """Take no more, and wait, for `answer_within` at the most, until what was taken is committed; then the engine
        may be disposed of. With an asynchronous engine only `aclose` waits."""
        self._closed = True
        self._verifying.close()
        if isinstance(self._commits, CommitThreads):
            self._commits.close(self.settings.answer_within)

    def _join(self, entry: Entry) -> None:
        if self._closed:
            raise Unavailable("the receiver is shutting down")
        if isinstance(self._commits, CommitThreads):
            self._commits.start()
        self._line.join(entry)
        if isinstance(self._commits, CommitTasks):
            self._commits.gathered()

    def _unavailable(self) -> Response:
        headers = (("content-type", "text/plain; charset=utf-8"), ("retry-after", str(self.settings.retry_after)))
        return Response(503, headers=headers)

    def _may_wait(self, request: Request) -> bool:
        """Whether verifying waits for keys or for a user's function, and must not hold up everybody else."""
        source = self.inbox.sources.get(request.source)
        return source is not None and source.needs_network

    def _prepare(self, request: Request) -> Accepted | Response:
        now = time.time()
        try:
            source = self.inbox.source(request.source)
            if request.method in PROBES and self.settings.answer_probes:
                return source.answer_probe(request) or Response(200, headers=(ALLOWED,))
            if request.method != "POST":
                return Response(405, headers=(ALLOWED,))
            length, limit = len(request.body), self.settings.max_body_bytes
            if length > limit:
                too_large = BodyTooLarge(f"the body has {length} bytes, over the limit of {limit}")
                return self.answer(too_large, source=source.name)
            answer = source.answer_unverified(request)
            if answer is not None:
                return answer
            accepted = accept(source, request, now, limit)
        except NotVerified as refusal:
            error = self._diagnosis.explain(source, request, now, refusal)
            return replace(self.answer(error, source=source.name), status=source.refused_status)
        except HookledgerError as error:
            return self.answer(error, source=request.source)
        except Exception:
            # A verifier that broke has not verified. Whether it can be mended by trying again, we cannot know.
            logger.exception("a request to %r could not be verified", request.source)
            return self._unavailable()
        if isinstance(accepted, Accepted) and not accepted.events:
            # Verified, and carrying nothing: an empty batch.
            logger.info("a request to %s carried no events", source.name, extra={"source": source.name})
            return source.accepted
        return accepted

    def _concluded(self, accepted: Accepted, outcome: Outcome | Exception) -> Response:
        source = accepted.source
        if isinstance(outcome, HookledgerError):
            return self.answer(outcome, source=source.name)
        if isinstance(outcome, Exception):
            return self._unavailable()
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s %d events of %s", outcome, len(accepted.events), source.name)
        return source.accepted


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
    intake._open()


def _too_late() -> Unavailable:
    return Unavailable("the database did not commit the event in time")
