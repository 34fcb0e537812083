"""The worker inside the web process, for small deployments: in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
from concurrent.futures import Future

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from hookledger.inbox import Inbox
from hookledger.ledger.ready import open_ready, open_ready_asynchronously
from hookledger.worker import Worker, WorkerSettings

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 5.0
"""How much longer than the grace time `stop` waits for the thread."""


class RunningWorker:
    """A worker that runs in a thread of this process. Made by `run_worker`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._work, name="hookledger-worker", daemon=True)
        self._thread.start()
        self._ready.result()
        # A thread that just vanished with its process would leave its deliveries to be counted as crashed.
        atexit.register(self.stop)

    @property
    def running(self) -> bool:
        """Whether it still works."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Claim no more, and wait up to the grace time until running handlers have ended. Called by itself
        when the process exits."""
        atexit.unregister(self.stop)
        if self._thread.is_alive():
            self._worker.stop()
            self._thread.join(self._worker.settings.grace + PATIENCE_SECONDS)

    def _work(self) -> None:
        try:
            asyncio.run(self._run())
        except Exception as error:
            if not self._ready.done():
                self._ready.set_exception(error)
                return
            log.critical("the worker in this process has ended, and deliveries stay pending: %s", error, exc_info=error)
        else:
            log.info("the worker in this process has stopped")

    async def _run(self) -> None:
        engine, schema = self._worker.engine, self._worker.inbox.schema
        if isinstance(engine, AsyncEngine):
            await open_ready_asynchronously(engine, schema)
        else:
            await asyncio.to_thread(open_ready, engine, schema)
        self._ready.set_result(None)
        await self._worker.run()


def run_worker(inbox: Inbox, engine: Engine | AsyncEngine, settings: WorkerSettings | None = None) -> RunningWorker:
    """Start a worker in this process, and return once the database was found ready for it.

    Call it in the process that serves, and not in one that forks afterwards, because threads and connections do
    not survive a fork. Under gunicorn that is the hook `post_fork`, or the module of the application as long as
    `preload_app` is off. Every process of the server then runs a worker, which is fine.

    Args:
        inbox: the handlers.
        engine: as for `Worker`. An Engine may be the receiver's, if its pool has a connection for each slot as
            well; an AsyncEngine, for asynchronous handlers, is used by the worker only.
        settings: as for `Worker`.

    Raises:
        SetupError: as `Worker`, or if the database cannot be worked with as it is.
    """
    return RunningWorker(Worker(inbox, engine, settings))
