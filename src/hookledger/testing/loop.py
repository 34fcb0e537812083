"""An event loop in a thread of its own, so that a worker can run beside any test, be it in a loop itself or not."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines, until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="hookledger-testing", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Result], seconds: float | None = None) -> Result:
        """Wait for what the coroutine returns.

        Args:
            coroutine: is run in the loop.
            seconds: how long to wait at the most; it is not stopped then.

        Raises:
            TimeoutError: if it has not ended by then.
            Whatever the coroutine raises.
        """
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result(seconds)

    def close(self) -> None:
        """End the loop, unless something blocks it; the thread is then left to the end of the process."""
        try:
            self.run(self._finish(), seconds=5)
        except TimeoutError:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()

    async def _finish(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1)
        await self._loop.shutdown_asyncgens()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._loop.shutdown_default_executor()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
