"""Blocking handlers under an asynchronous engine: they run in a thread, their statements on the event loop.

SQLAlchemy's connection waits by handing an awaitable to the greenlet that drives it. Here that driver sits in
the thread, and has the awaitable run by the loop. So a handler that blocks holds up its own slot only.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

from greenlet import getcurrent, greenlet


class _ThreadGreenlet(greenlet):
    # SQLAlchemy asks for this mark before it hands over an awaitable.
    __sqlalchemy_greenlet_provider__ = True


async def _completed(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def call_in_this_thread(
    loop: asyncio.AbstractEventLoop, variables: contextvars.Context, function: Callable[[], Any]
) -> tuple[Any, BaseException | None]:
    """Call a function from a thread that is not the loop's; what it awaits is awaited on the loop.

    Args:
        loop: that runs in another thread.
        variables: the context in which the function is called.
        function: without arguments.

    Returns:
        What the function returned, and what it raised: not every exception may be raised through a future.
    """
    context = _ThreadGreenlet(function, getcurrent())
    context.gr_context = variables
    try:
        result = context.switch()
        while not context.dead:
            try:
                value = asyncio.run_coroutine_threadsafe(_completed(result), loop).result()
            except BaseException as error:
                result = context.throw(error)
            else:
                result = context.switch(value)
    except BaseException as error:
        return None, error
    return result, None
