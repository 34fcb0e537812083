"""A slot: one connection and one cycle, in a thread (Engine) or on the event loop (AsyncEngine) (D12)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from hookledger.worker.call import Caller
from hookledger.worker.cycle import Cycle
from hookledger.worker.sever import sever
from hookledger.worker.threads import DaemonThread
from hookledger.worker.transaction import HandlerConnection

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class Slot:
    """Runs cycles one after the other on a connection that it keeps.

    Args:
        number: from 0, for the log.
        engine: of the worker.
        make_cycle: makes the slot's cycle, given how it calls handlers.
    """

    def __init__(self, number: int, engine: Engine | AsyncEngine, make_cycle: Callable[[Caller], Cycle]) -> None:
        self.number = number
        self._thread = DaemonThread(f"hookledger-slot-{number}")
        self._async_engine = engine if isinstance(engine, AsyncEngine) else None
        core = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
        # The fence of a claim is read at every statement anew, whatever level the engine was made with.
        self._engine = core.execution_options(isolation_level="READ COMMITTED")
        if self._async_engine is None:
            caller = Caller()
        else:
            caller = Caller(self._async_engine, asyncio.get_running_loop(), self._thread)
        self.cycle = make_cycle(caller)
        self._connection: HandlerConnection | None = None

    async def run(self) -> int:
        """Run one cycle. Returns how many deliveries were claimed.

        Raises:
            SQLAlchemyError: when the database is away; the next run connects anew.
        """
        try:
            return await self._call(self._cycle)
        except BaseException:
            await self._call(self._drop)
            raise

    async def disconnect(self) -> None:
        """Give the connection back to the pool."""
        await self._call(self._drop)
        self._thread.shutdown()

    async def parameters(self, read: Callable[[Any], Result]) -> Result:
        """What `read` says of the driver's connection."""
        return await self._call(lambda: read(self._connected().connection.driver_connection))

    def sever(self) -> None:
        """Cut the connection under a handler that does not end, so that its rows are released."""
        connection = self._connection
        if connection is not None and not connection.closed:
            with contextlib.suppress(SQLAlchemyError):
                running, connection.running = connection.running, False
                driver = connection.connection.driver_connection
                connection.running = running
                sever(driver)

    async def _call(self, function: Callable[[], Result]) -> Result:
        if self._async_engine is not None:
            return await greenlet_spawn(function)
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _cycle(self) -> int:
        return self.cycle.run(self._connected())

    def _connected(self) -> HandlerConnection:
        if self._connection is None:
            self._connection = HandlerConnection(self._engine)
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.running = False
            with contextlib.suppress(Exception):
                # A connection in an unknown state is not handed to the next user of the pool.
                if connection.in_transaction():
                    connection.invalidate()
                connection.close()
