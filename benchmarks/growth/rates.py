"""The rate at which workers drain a ledger, whatever is in it."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass, field
from typing import Any, Self

from benchmarks.database import count
from benchmarks.drain.handlers import Counter, drain, work_on
from benchmarks.processes import Workers, timed
from benchmarks.report import Failed
from hookledger.worker import WorkerSettings

PENDING = "SELECT count(*) FROM hookledger.pending"
PROCESSES = 2
LOOK_EVERY = 0.01


@dataclass(frozen=True)
class Crew:
    """The workers.

    Args:
        processes: how many there are.
        settings: of each.
        engine: "sync" or "async".
    """

    processes: int = PROCESSES
    settings: WorkerSettings = field(default_factory=WorkerSettings)
    engine: str = "sync"


def drain_rate(url: str, crew: Crew, *, at_most: int | None = None) -> float:
    """Let the workers work until nothing is due, or until about so many deliveries are settled.

    Returns:
        Deliveries settled a second, the start of the processes included.

    Raises:
        Failed: they left something that they should not have.
    """
    share = None if at_most is None else max(1, at_most // crew.processes)
    before = count(url, PENDING)
    seconds = timed(drain, crew.processes, url, crew.settings, False, crew.engine == "async", share)
    left = count(url, PENDING)
    if at_most is None and left:
        raise Failed(f"{left} of {before} deliveries are still pending")
    return (before - left) / seconds


class AtWork:
    """Workers that go on working, as in production, until the end of the block.

    Args:
        url: of the database.
        crew: the workers.
    """

    def __init__(self, url: str, crew: Crew) -> None:
        self._settled: Counter = multiprocessing.get_context("fork").Value("q", 0)
        arguments = (url, crew.settings, crew.engine == "async", self._settled)
        self._workers = Workers(work_on, crew.processes, *arguments)

    def __enter__(self) -> Self:
        self._workers.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.end()

    def rate(self, before: int, deliveries: int) -> float:
        """The deliveries settled a second, from the first batch to the last.

        Args:
            before: how many were settled before they came.
            deliveries: how many came.
        """
        while self._settled.value == before:
            self._wait()
        start, first = time.monotonic(), self._settled.value
        while self._settled.value < before + deliveries:
            self._wait()
        return (before + deliveries - first) / (time.monotonic() - start)

    @property
    def settled(self) -> int:
        """How many are settled."""
        return int(self._settled.value)

    def _wait(self) -> None:
        self._workers.check()
        time.sleep(LOOK_EVERY)


def row(**values: Any) -> dict[str, Any]:
    """A row of a table of results; rates are rounded."""
    return {name: round(value, 1) if isinstance(value, float) else value for name, value in values.items()}
