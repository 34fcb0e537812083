"""Threads for verifications that wait: bounded in number, in time and in what waits for them."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from hookledger.errors import Unavailable
from hookledger.receive.verifying import AT_A_TIME, AT_A_TIME_BLOCKING, VerifyThreads
from tests.processes import wait_until

LONG = 60.0


class Holding:
    """Work that goes on until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.begun = 0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            self.begun += 1
        assert self.released.wait(LONG)
        return "done"


@pytest.fixture
def holding() -> Iterator[Holding]:
    """Released at the latest when the test ends."""
    holding = Holding()
    yield holding
    holding.released.set()


@pytest.fixture
def threads() -> Iterator[VerifyThreads]:
    """With the usual number of threads, for ten requests."""
    threads = VerifyThreads(None, 10, 1000)
    yield threads
    threads.close()


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    """The threads of a server."""
    with ThreadPoolExecutor(20) as callers:
        yield callers


def test_the_result_and_the_error_are_those_of_the_work(threads: VerifyThreads) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    assert threads.run_blocking(lambda: 7, 0, LONG) == 7
    with pytest.raises(ZeroDivisionError):
        threads.run_blocking(broken, 0, LONG)
    assert asyncio.run(threads.run(lambda: 8, 0, LONG)) == 8
    with pytest.raises(ZeroDivisionError):
        asyncio.run(threads.run(broken, 0, LONG))


def test_the_work_sees_the_context_of_its_caller(threads: VerifyThreads) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    variable.set("the caller's")
    assert threads.run_blocking(variable.get, 0, LONG) == "the caller's"
    assert asyncio.run(threads.run(variable.get, 0, LONG)) == "the caller's"
    variable.set("another")
    assert threads.run_blocking(variable.get, 0, LONG) == "another"


def test_a_server_thread_waits_for_a_thread_of_ours_for_a_moment_only(
    threads: VerifyThreads, holding: Holding, callers: ThreadPoolExecutor
) -> None:
    held: list[Future[str]] = [callers.submit(threads.run_blocking, holding, 0, LONG) for _ in range(3)]
    wait_until(lambda: holding.begun == AT_A_TIME_BLOCKING == 3)
    with pytest.raises(Unavailable, match="already"):
        threads.run_blocking(holding, 0, LONG)
    holding.released.set()
    assert [each.result() for each in held] == ["done"] * 3
    assert threads.run_blocking(holding, 0, LONG) == "done"
    assert holding.begun == 4


def test_from_an_event_loop_more_wait_and_all_are_bounded(threads: VerifyThreads, holding: Holding) -> None:
    async def ten_and_one() -> list[str | BaseException]:
        ten = [asyncio.create_task(threads.run(holding, 0, LONG)) for _ in range(10)]
        await asyncio.to_thread(wait_until, lambda: holding.begun == AT_A_TIME)
        with pytest.raises(Unavailable, match="10 requests wait"):
            await threads.run(holding, 0, LONG)
        assert holding.begun == AT_A_TIME
        holding.released.set()
        return await asyncio.gather(*ten, return_exceptions=True)

    assert asyncio.run(ten_and_one()) == ["done"] * 10


def test_they_hold_only_so_many_bytes(threads: VerifyThreads, holding: Holding, callers: ThreadPoolExecutor) -> None:
    first = callers.submit(threads.run_blocking, holding, 5000, LONG)
    wait_until(lambda: holding.begun == 1)
    with pytest.raises(Unavailable, match="1 requests wait"):
        threads.run_blocking(holding, 1, LONG)
    holding.released.set()
    assert first.result() == "done"
    wait_until(lambda: threads._bytes == 0)


def test_whoever_has_waited_too_long_is_told_and_what_has_not_begun_is_not_run(
    threads: VerifyThreads, holding: Holding
) -> None:
    async def late() -> None:
        eight = [asyncio.create_task(threads.run(holding, 0, LONG)) for _ in range(8)]
        await asyncio.to_thread(wait_until, lambda: holding.begun == AT_A_TIME)
        with pytest.raises(Unavailable, match="in time"):
            await threads.run(holding, 0, 0.01)
        for each in eight:
            each.cancel()

    asyncio.run(late())
    with pytest.raises(Unavailable):
        threads.run_blocking(holding, 0, 0.01)
    holding.released.set()
    wait_until(lambda: threads._jobs == 0)
    assert holding.begun == AT_A_TIME


def test_what_runs_too_long_for_a_server_thread_is_left(threads: VerifyThreads, holding: Holding) -> None:
    with pytest.raises(Unavailable, match="in time"):
        threads.run_blocking(holding, 0, 0.3)
    assert holding.begun == 1


def test_threads_end_when_it_is_closed(threads: VerifyThreads) -> None:
    threads.run_blocking(lambda: None, 0, LONG)
    assert threads._threads == 1
    threads.close()
    wait_until(lambda: threads._threads == 0)
