"""Verifying that may wait for keys or for a function of the user's: apart from everybody else, and within bounds (D3).

A key server that is slow holds up the requests of its own source only: they wait in daemon threads of their own.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hookledger.errors import Unavailable

Result = TypeVar("Result")

AT_A_TIME = 8
"""Requests that are verified at a time, called from an event loop."""
AT_A_TIME_BLOCKING = 3
"""The same from a threaded server, where each holds one of the server's threads: waitress has 4 by default."""
PATIENCE = 0.25
"""Seconds that a thread of the server waits for one of ours."""


@dataclass(slots=True, eq=False)
class _Job:
    """Args:
    run: in one of the threads, with the context of the caller.
    size: bytes that it holds.
    future: its result; a cancelled one is not run.
    begun: set when a thread takes it.
    """

    run: Callable[[], Any]
    size: int
    future: Future[Any] = field(default_factory=Future)
    begun: threading.Event = field(default_factory=threading.Event)


class VerifyThreads:
    """Runs verifications in daemon threads, which start when they are first needed.

    Args:
        at_a_time: threads; None for the usual number of each way of calling.
        longest: requests that may wait or be verified.
        largest: bytes that they may hold together; one is let in however large it is.
    """

    def __init__(self, at_a_time: int | None, longest: int, largest: int) -> None:
        self._at_a_time = at_a_time
        self._longest = longest
        self._largest = largest
        self._waiting: deque[_Job] = deque()
        self._jobs = self._bytes = self._threads = self._idle = 0
        self._ending = False
        self._lock = threading.Lock()
        self._came = threading.Condition(self._lock)

    async def run(self, work: Callable[[], Result], size: int, seconds: float) -> Result:
        """The result of the work, from an event loop.

        Args:
            work: called once, in a thread.
            size: bytes that it holds.
            seconds: to wait for it.

        Raises:
            Unavailable: if it does not end in time, or too many wait.
        """
        job = self._join(work, size, self._at_a_time or AT_A_TIME)
        result: asyncio.Future[Result] = asyncio.wrap_future(job.future)
        try:
            await asyncio.wait({result}, timeout=seconds)
            if not result.done():
                raise _too_late()
            return result.result()
        finally:
            result.cancel()

    def run_blocking(self, work: Callable[[], Result], size: int, seconds: float) -> Result:
        """As `run`, from a thread of a server."""
        end = time.monotonic() + seconds
        job = self._join(work, size, self._at_a_time or AT_A_TIME_BLOCKING)
        if not job.begun.wait(min(PATIENCE, seconds)) and job.future.cancel():
            raise Unavailable("others wait for keys, or for the function that gives the secrets, already")
        try:
            result: Result = job.future.result(max(0.0, end - time.monotonic()))
        except TimeoutError:
            raise _too_late() from None
        return result

    def close(self) -> None:
        """End the threads once nothing waits."""
        with self._lock:
            self._ending = True
            self._came.notify_all()

    def _join(self, work: Callable[[], Any], size: int, at_a_time: int) -> _Job:
        context = contextvars.copy_context()
        job = _Job(lambda: context.run(work), size)
        with self._lock:
            if self._jobs >= self._longest or (self._jobs and self._bytes + size > self._largest):
                raise Unavailable(f"{self._jobs} requests wait to be verified already")
            if self._idle <= len(self._waiting) and self._threads < at_a_time:
                self._start()
            self._waiting.append(job)
            self._jobs += 1
            self._bytes += size
            self._came.notify()
        return job

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name=f"hookledger-verify-{self._threads}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            if not self._threads:
                raise Unavailable(f"no thread to verify in can be started: {error}") from error
            return
        self._threads += 1

    def _work(self) -> None:
        while (job := self._next()) is not None:
            if job.future.set_running_or_notify_cancel():
                job.begun.set()
                try:
                    job.future.set_result(job.run())
                except BaseException as error:
                    job.future.set_exception(error)
            with self._lock:
                self._jobs -= 1
                self._bytes -= job.size
            del job  # the request that it holds is not kept until the next one comes

    def _next(self) -> _Job | None:
        with self._lock:
            self._idle += 1
            try:
                while not self._waiting:
                    if self._ending:
                        self._threads -= 1
                        return None
                    self._came.wait()
                return self._waiting.popleft()
            finally:
                self._idle -= 1


def _too_late() -> Unavailable:
    return Unavailable("the request could not be verified in time: its keys, or its secrets, did not come")
