"""A slot: one connection and one cycle, in a thread (Engine) or on the event loop (AsyncEngine) (D12)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from hookledger.ledger.failure import is_demoted
from hookledger.worker.call import Caller
from hookledger.worker.connector import Connector
from hookledger.worker.cycle import Cycle
from hookledger.worker.sever import sever
from hookledger.worker.threads import DaemonThread

Result = TypeVar("Result")


class Slot:
    """Runs cycles one after the other on a connection that it keeps.

    Args:
        number: from 0, for the log.
        engine: of the worker.
        make_cycle: makes the slot's cycle, given how it calls handlers and its connector.
    """

    def __init__(
        self, number: int, engine: Engine | AsyncEngine, make_cycle: Callable[[Caller, Connector], Cycle]
    ) -> None:
        self.number = number
        self._thread = DaemonThread(f"hookledger-slot-{number}")
        self._is_async = isinstance(engine, AsyncEngine)
        if isinstance(engine, AsyncEngine):
            caller = Caller(engine, asyncio.get_running_loop(), self._thread)
            self.connector = Connector(engine.sync_engine)
        else:
            caller = Caller()
            self.connector = Connector(engine)
        self.cycle = make_cycle(caller, self.connector)
        self.connected = asyncio.Event()
        """Set from the first connection on."""

    async def run(self) -> int:
        """Run one cycle. Returns how many deliveries were claimed.

        Raises:
            SQLAlchemyError: when the database is away; the next run connects anew.
        """
        try:
            if not self.connected.is_set():
                await self._call(self.connector.connection)
                self.connected.set()
            return await self._call(self.cycle.run)
        except BaseException as error:
            # One that takes no writes leads to the old primary; a new one may lead to the new.
            await self._call(partial(self.connector.drop, for_good=is_demoted(error)))
            raise

    @property
    def busy(self) -> bool:
        """Whether its thread still runs something, as a blocking handler that does not end."""
        return self._thread.busy

    def processor_time(self) -> float:
        """Seconds that what it runs in has had a processor: its thread, and on an asynchronous engine the event loop,
        from which this must be called."""
        own = self._thread.processor_time()
        return own + time.thread_time() if self._is_async else own

    async def disconnect(self) -> None:
        """Give the connection back to the pool."""
        await self._call(self.connector.drop)
        self.let_go()

    def let_go(self) -> None:
        """Let the thread end, as soon as what it runs has ended."""
        self._thread.shutdown()

    def sever(self, seconds: float) -> None:
        """Cut the connection under a handler that does not end, so that its rows are released.

        Args:
            seconds: how long to wait at the most for the server to hear of it.
        """
        driver_connection = self.connector.driver_connection
        if driver_connection is not None:
            sever(driver_connection, seconds)

    async def _call(self, function: Callable[[], Result]) -> Result:
        if self._is_async:
            return await greenlet_spawn(function)
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)
