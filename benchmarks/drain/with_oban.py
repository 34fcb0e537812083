"""oban (the Python one): a no-op job, uvloop, which its own command line uses as well.

https://oban.pro/docs/py. It needs Python 3.12 or newer, so this module runs under an interpreter of its own if need be,
and imports nothing but oban, its dependencies and the standard library.
"""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any

import psycopg
import uvloop
from oban import Oban, worker  # type: ignore[import-not-found]
from oban.schema import install_sql  # type: ignore[import-not-found]

from benchmarks.drain.contender import Job
from benchmarks.processes import Workers
from benchmarks.report import Failed

VARIANTS: tuple[dict[str, Any], ...] = ({"limit": 10}, {"limit": 100}, {"limit": 400}, {"limit": 1000})
"""Jobs that a process runs, and so fetches, at a time."""
CALIBRATION = 10_000
QUEUE = "default"
LOOK_EVERY = 0.02
"""Seconds between two looks whether jobs are left."""
LEFT = "SELECT EXISTS (SELECT FROM oban_jobs WHERE state IN ('available', 'scheduled', 'executing', 'retryable'))"
DONE = "SELECT count(*) FROM oban_jobs WHERE state = 'completed'"
FILL = "INSERT INTO oban_jobs (worker, queue) SELECT %s, %s FROM generate_series(1, %s)"


@worker(queue=QUEUE)
class CustomerUpdated:
    """A job that does nothing."""

    async def process(self, _: Any) -> None:
        """Do nothing."""


def prepare(job: Job) -> None:
    """Install its tables and insert the jobs."""
    with psycopg.connect(job.dsn) as connection:
        connection.execute(install_sql().encode())
        name = f"{CustomerUpdated.__module__}.{CustomerUpdated.__qualname__}"
        connection.execute(FILL, (name, QUEUE, job.deliveries))


def work(job: Job) -> dict[str, Any]:
    """Run everything; timed until no job is left, not to the end of the processes, which have no drain mode."""
    workers = Workers(_run, job.workers, job)
    with psycopg.connect(job.dsn, autocommit=True) as connection:
        start = time.perf_counter()
        workers.start()
        while (left := connection.execute(LEFT).fetchone()) is not None and left[0]:
            workers.check()
            time.sleep(LOOK_EVERY)
        seconds = time.perf_counter() - start
        workers.stop()
        workers.join()
        done = connection.execute(DONE).fetchone()
    assert done is not None
    if done[0] != job.deliveries:
        raise Failed(f"oban completed {done[0]} of {job.deliveries} jobs")
    return {"seconds": seconds}


def _run(job: Job) -> None:
    uvloop.run(_serve(job))


async def _serve(job: Job) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    pool = await Oban.create_pool(job.dsn, min_size=4)
    async with Oban(pool=pool, queues={QUEUE: job.variant["limit"]}):
        await stopped.wait()
    await pool.close()
