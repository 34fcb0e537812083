"""procrastinate: a no-op job, uvloop, a pool that does not check its connections at every use.

https://procrastinate.readthedocs.io/
"""

from __future__ import annotations

from typing import Any

import psycopg
import psycopg_pool
import uvloop
from procrastinate import App, PsycopgConnector
from procrastinate.schema import SchemaManager

from benchmarks.drain.contender import Job
from benchmarks.processes import timed
from benchmarks.report import Failed

VARIANTS: tuple[dict[str, Any], ...] = (
    {"concurrency": 1, "delete_jobs": "never"},
    {"concurrency": 4, "delete_jobs": "never"},
    {"concurrency": 16, "delete_jobs": "never"},
    {"concurrency": 4, "delete_jobs": "successful"},
    {"concurrency": 16, "delete_jobs": "successful"},
)
"""Jobs that a process runs at a time, and whether it deletes those that succeeded."""
CALIBRATION = 1000
STEP = 1000


def prepare(job: Job) -> None:
    """Install its tables and defer the jobs."""
    with psycopg.connect(job.dsn) as connection:
        connection.execute(SchemaManager.get_schema().encode())
    uvloop.run(_prepare(job))


def work(job: Job) -> dict[str, Any]:
    """Run everything."""
    seconds = timed(_drain, job.workers, job)
    with psycopg.connect(job.dsn) as connection:
        left = connection.execute("SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'").fetchone()
    assert left is not None
    if left[0]:
        raise Failed(f"procrastinate left {left[0]} of {job.deliveries} jobs")
    return {"seconds": seconds}


def _app(job: Job) -> tuple[App, Any]:
    app = App(connector=PsycopgConnector())

    @app.task(name="customer_updated")
    async def customer_updated() -> None:
        pass

    return app, customer_updated


def _pool(job: Job, size: int) -> psycopg_pool.AsyncConnectionPool:
    return psycopg_pool.AsyncConnectionPool(job.dsn, min_size=size, max_size=size, open=False)


async def _prepare(job: Job) -> None:
    app, customer_updated = _app(job)
    async with _pool(job, 1) as pool:
        await app.connector.open_async(pool)
        for first in range(0, job.deliveries, STEP):
            await customer_updated.batch_defer_async(*[{}] * min(STEP, job.deliveries - first))


def _drain(job: Job) -> None:
    uvloop.run(_run(job))


async def _run(job: Job) -> None:
    app, _ = _app(job)
    # One connection a job that runs at a time, one to fetch with and one to spare.
    async with _pool(job, job.variant["concurrency"] + 2) as pool:
        await app.connector.open_async(pool)
        await app.run_worker_async(wait=False, listen_notify=False, **job.variant)
