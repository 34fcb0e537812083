"""pgqueuer: a no-op job, batches of 100, drain mode, asyncpg, uvloop.

https://janbjorge.github.io/pgqueuer/. Everything is durable, its default; autovacuum as it recommends; its statistics,
which are not needed to settle a job, are not gathered in the timed part.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import psycopg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job as Task
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from benchmarks.drain.contender import Job
from benchmarks.processes import timed
from benchmarks.report import Failed

VARIANTS: tuple[dict[str, Any], ...] = (
    {"connections": "one", "managers": 1},
    {"connections": "pool", "managers": 1},
    {"connections": "one", "managers": 4},
)
"""How a process is connected, and how many queue managers it runs, as pgqueuer's own benchmark does."""
CALIBRATION = 10_000
ENTRYPOINT = "customer_updated"
STEP = 10_000


def prepare(job: Job) -> None:
    """Install its tables and enqueue the jobs."""
    uvloop.run(_prepare(job))


def work(job: Job) -> dict[str, Any]:
    """Run everything; timed up to the last outcome, not to the end of the processes."""
    with psycopg.connect(job.dsn, autocommit=True) as connection:
        start = connection.execute("SELECT clock_timestamp()").fetchone()
        timed(_drain, job.workers, job)
        left = connection.execute("SELECT count(*) FROM pgqueuer").fetchone()
        done = connection.execute(
            "SELECT count(*), max(created) FROM pgqueuer_log WHERE status = 'successful'"
        ).fetchone()
    assert start is not None
    assert left is not None
    assert done is not None
    if left[0] or done[0] != job.deliveries:
        raise Failed(f"pgqueuer ran {done[0]} of {job.deliveries} jobs and left {left[0]}")
    return {"seconds": (done[1] - start[0]).total_seconds()}


async def _prepare(job: Job) -> None:
    connection = await asyncpg.connect(job.dsn)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    await queries.optimize_autovacuum()
    for first in range(0, job.deliveries, STEP):
        size = min(STEP, job.deliveries - first)
        payloads: list[bytes | None] = [None] * size
        await queries.enqueue([ENTRYPOINT] * size, payloads, [0] * size)
    await connection.close()


def _drain(job: Job) -> None:
    uvloop.run(_run(job))


async def _run(job: Job) -> None:
    await asyncio.gather(*[_manage(job) for _ in range(job.variant["managers"])])


async def _manage(job: Job) -> None:
    if job.variant["connections"] == "pool":
        async with asyncpg.create_pool(job.dsn, min_size=4, max_size=4) as pool:
            await _drain_queue(PgQueuer(AsyncpgPoolDriver(pool)), job.batch)
    else:
        connection = await asyncpg.connect(job.dsn)
        await _drain_queue(PgQueuer(AsyncpgDriver(connection)), job.batch)
        await connection.close()


async def _drain_queue(queue: PgQueuer, batch: int) -> None:
    @queue.entrypoint(ENTRYPOINT)
    async def customer_updated(_: Task) -> None:
        pass

    await queue.qm.run(
        batch_size=batch,
        mode=QueueExecutionMode.drain,
        dequeue_timeout=timedelta(milliseconds=100),
        log_aggregation_interval=timedelta(0),
    )
