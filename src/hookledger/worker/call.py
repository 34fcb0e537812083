"""Calling a user's handler within the open transaction, whichever kind of function and engine (D12)."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.orm import Session
from sqlalchemy.util import await_only

from hookledger.delivery import Delivery
from hookledger.handlers import Handler
from hookledger.worker.bridge import call_in_this_thread
from hookledger.worker.session import SETTINGS, HandlerSession
from hookledger.worker.transaction import HandlerConnection


class Caller:
    """Calls handlers for a slot.

    Args:
        engine: the asynchronous engine of the slot; None in a thread with a synchronous one.
        loop: the event loop of an asynchronous engine.
        thread: where blocking handlers run under an asynchronous engine.
    """

    def __init__(
        self,
        engine: AsyncEngine | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        thread: Executor | None = None,
    ) -> None:
        self._engine = engine
        self._loop = loop
        self._thread = thread

    def call(self, handler: Handler, delivery: Delivery, connection: HandlerConnection) -> Any:
        """Call the handler with what its annotation asks for; return what it returned.

        Raises:
            Whatever the handler raised.
        """
        if handler.takes is Connection and self._loop is None:
            return contextvars.copy_context().run(handler.function, delivery, connection)
        if issubclass(handler.takes, AsyncConnection):
            assert self._engine is not None
            return await_only(handler.function(delivery, AsyncConnection(self._engine, connection)))
        if issubclass(handler.takes, AsyncSession):
            assert self._engine is not None
            asynchronous = AsyncSession(
                AsyncConnection(self._engine, connection), sync_session_class=HandlerSession, **SETTINGS
            )
            session = asynchronous.sync_session
            assert isinstance(session, HandlerSession)
            try:
                returned = await_only(handler.function(delivery, asynchronous))
                session.finish()
                return returned
            finally:
                session.forget()
        if issubclass(handler.takes, Session):
            return self._blocking(lambda: self._with_session(handler, delivery, connection))
        return self._blocking(lambda: handler.function(delivery, connection))

    def _with_session(self, handler: Handler, delivery: Delivery, connection: HandlerConnection) -> Any:
        session = HandlerSession(connection, **SETTINGS)
        try:
            returned = handler.function(delivery, session)
            session.finish()
            return returned
        finally:
            session.forget()

    def _blocking(self, call: Callable[[], Any]) -> Any:
        # In a context of its own, so that what one handler sets is not there for the next.
        context = contextvars.copy_context()
        if self._loop is None:
            return context.run(call)
        assert self._thread is not None
        returned, error = await_only(
            self._loop.run_in_executor(self._thread, call_in_this_thread, self._loop, context, call)
        )
        if error is not None:
            try:
                raise error
            finally:
                del error
        return returned
