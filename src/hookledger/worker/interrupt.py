"""Telling what is meant to stop the worker from what a handler raised."""

from __future__ import annotations

import asyncio
import threading

from greenlet import GreenletExit

from hookledger.handlers import Handler


def is_interrupt(error: BaseException, handler: Handler) -> bool:
    """Whether the error comes from outside the handler, and must pass on: our own cancelling of a slot, Ctrl-C,
    the end of a greenlet. A handler that raises SystemExit or the like by itself has just failed."""
    if isinstance(error, GeneratorExit | GreenletExit):
        return True
    if isinstance(error, KeyboardInterrupt):
        # A blocking handler runs in a thread, which Ctrl-C never reaches.
        return handler.is_async and threading.current_thread() is threading.main_thread()
    if isinstance(error, asyncio.CancelledError):
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return False
        return task is not None and task.cancelling() > 0
    return False
