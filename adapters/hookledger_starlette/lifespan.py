"""The worker inside the web process, for small deployments: started and stopped by the application's lifespan."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from hookledger.inbox import Inbox
from hookledger.ledger.ready import open_ready, open_ready_asynchronously
from hookledger.worker import Worker, WorkerSettings

log = logging.getLogger(__name__)


def worker_lifespan(
    inbox: Inbox, engine: Engine | AsyncEngine, settings: WorkerSettings | None = None
) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """A lifespan that runs a worker as long as the application is served.

        Starlette(routes=[...], lifespan=worker_lifespan(inbox, engine))

    Within a lifespan of your own:

        @asynccontextmanager
        async def lifespan(app):
            async with worker_lifespan(inbox, engine)(app):
                yield

    At the end running handlers get the grace time of the settings; give the server as long to shut down. A server
    with several processes runs as many workers, which is fine.

    Args:
        inbox: the handlers.
        engine: as for `Worker`; it may be the receiver's, if its pool has a connection for each slot as well.
        settings: as for `Worker`.

    Raises:
        SetupError: as `Worker`; and when the application starts, if the database cannot be worked with as it is.
    """
    worker = Worker(inbox, engine, settings)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        if isinstance(engine, AsyncEngine):
            await open_ready_asynchronously(engine, inbox.schema)
        else:
            await asyncio.to_thread(open_ready, engine, inbox.schema)
        working = asyncio.create_task(worker.run(), name="hookledger-worker")
        working.add_done_callback(_tell)
        try:
            yield
        finally:
            worker.stop()
            await asyncio.wait([working])

    return lifespan


def _tell(working: asyncio.Task[None]) -> None:
    if working.cancelled():
        log.error("the worker in this process was cancelled")
    elif (error := working.exception()) is not None:
        log.critical("the worker in this process has ended, and deliveries stay pending: %s", error, exc_info=error)
    else:
        log.info("the worker in this process has stopped")
