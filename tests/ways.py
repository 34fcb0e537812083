"""The ways in which a worker runs handlers: each test of the worker is run in all of them (D12)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from hookledger import Delivery, Inbox
from hookledger import engine as engines
from hookledger.worker import Settled, Worker, WorkerSettings
from tests.processes import DEADLINE_SECONDS

Body = Callable[[Delivery, Connection], Any]
SessionBody = Callable[[Delivery, Session], Any]


@dataclass(frozen=True)
class Way:
    """An engine and a kind of handler.

    Args:
        name: for pytest.
        async_engine: whether the engine is an AsyncEngine.
        async_handlers: whether the handlers are coroutine functions.
    """

    name: str
    async_engine: bool
    async_handlers: bool

    def handler(self, body: Body) -> Callable[..., Any]:
        """A handler of this kind that does what the body says."""
        if not self.async_handlers:

            def handle(delivery: Delivery, tx: Connection) -> Any:
                return body(delivery, tx)

            return handle

        async def handle_asynchronously(delivery: Delivery, tx: AsyncConnection) -> Any:
            return await tx.run_sync(lambda connection: body(delivery, connection))

        return handle_asynchronously

    def session_handler(self, body: SessionBody) -> Callable[..., Any]:
        """As `handler`, with a session."""
        if not self.async_handlers:

            def handle(delivery: Delivery, tx: Session) -> Any:
                return body(delivery, tx)

            return handle

        async def handle_asynchronously(delivery: Delivery, tx: AsyncSession) -> Any:
            return await tx.run_sync(lambda session: body(delivery, session))

        return handle_asynchronously

    def engine(self, database_url: str, slots: int = 4) -> Engine | AsyncEngine:
        """An engine as `hookledger worker` makes it. An asynchronous one belongs to the loop that uses it."""
        if self.async_engine:
            return engines.create(database_url, asynchronous=True, pool_size=slots + 2)
        return engines.create(database_url, pool_size=slots + 2)

    def work(
        self,
        database_url: str,
        inbox: Inbox,
        *,
        while_working: Callable[[Worker], Awaitable[None]] | None = None,
        engine: Callable[[], Engine | AsyncEngine] | None = None,
        observe: Callable[[Settled], None] | None = None,
        **settings: Any,
    ) -> None:
        """Run a worker until nothing is due; or, with `while_working`, until that has ended.

        Args:
            database_url: of the ledger.
            inbox: the handlers.
            while_working: runs beside the worker, in its loop.
            engine: makes another engine than the usual.
            observe: the worker's.
            settings: those of the worker that differ from the default.
        """
        # What the tests do in the worker's loop may wait for the locks of partitions that it makes from there.
        chosen = WorkerSettings(**{"make_partitions": False, **settings})

        async def run() -> None:
            used = engine() if engine else self.engine(database_url, chosen.slots)
            worker = Worker(inbox, used, chosen, observe=observe)
            try:
                if while_working is None:
                    await worker.run_until_idle()
                    return
                running = asyncio.create_task(worker.run())
                beside = asyncio.create_task(_awaited(while_working(worker)))
                await asyncio.wait([running, beside], return_when=asyncio.FIRST_COMPLETED)
                if not beside.done():
                    beside.cancel()
                worker.stop()
                await running
                await beside
            finally:
                disposed = used.dispose()
                if inspect.isawaitable(disposed):
                    await disposed

        async def run_in_time() -> None:
            # A worker that cannot go on tries for ever; a test must not.
            async with asyncio.timeout(DEADLINE_SECONDS):
                await run()

        asyncio.run(run_in_time())


async def _awaited(awaitable: Awaitable[None]) -> None:
    await awaitable


WAYS = (
    Way("sync-engine", async_engine=False, async_handlers=False),
    Way("async-engine-blocking-handlers", async_engine=True, async_handlers=False),
    Way("async-engine-async-handlers", async_engine=True, async_handlers=True),
)
