"""Daemon threads that run one call at a time and give a future for it.

concurrent.futures joins its threads when the interpreter ends, so a handler that never returns would keep
the process from ending after its grace time.
"""

from __future__ import annotations

import concurrent.futures
import queue
import threading
import time
from collections.abc import Callable
from typing import Any


class DaemonThread(concurrent.futures.Executor):
    """An executor of one daemon thread.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[concurrent.futures.Future[Any], Callable[[], Any]] | None] = (
            queue.SimpleQueue()
        )
        self.busy = False
        """Whether it is running a call."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        """Run the function in the thread, after those submitted before."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._calls.put((future, lambda: function(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the thread end after what it was given; never waits for it."""
        self._calls.put(None)

    def processor_time(self) -> float:
        """Seconds that the thread has had a processor; always 0 where the system does not tell."""
        identity = self._thread.ident
        # A thread that has ended must not be asked for: that may crash the process.
        if identity is None or not self._thread.is_alive() or not hasattr(time, "pthread_getcpuclockid"):
            return 0.0
        return time.clock_gettime(time.pthread_getcpuclockid(identity))

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            future, function = call
            if future.set_running_or_notify_cancel():
                self.busy = True
                try:
                    result = function()
                except BaseException as error:
                    self.busy = False
                    future.set_exception(error)
                else:
                    self.busy = False
                    future.set_result(result)
                    del result
            # What a call held must not live until the next one comes.
            del call, future, function
