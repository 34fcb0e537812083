"""hookledger: workers with default settings, a snapshot handler with watermark that reads the JSON."""

from __future__ import annotations

from typing import Any

import psycopg

from benchmarks.database import count
from benchmarks.drain.contender import Job
from benchmarks.drain.handlers import MINE, drain
from benchmarks.ledger import add_pending, outcomes
from benchmarks.processes import timed
from benchmarks.report import Failed
from hookledger.worker import WorkerSettings


def prepare(job: Job) -> None:
    """Fill the ledger."""
    add_pending(job.url, job.deliveries, resources=job.resources, body=job.body)
    with psycopg.connect(job.dsn) as connection:
        connection.execute(MINE)


def work(job: Job) -> dict[str, Any]:
    """Settle everything."""
    seconds = timed(drain, job.workers, job.url, WorkerSettings(), job.insert, job.engine == "async")
    found = outcomes(job.url)
    pending = count(job.url, "SELECT count(*) FROM hookledger.pending")
    if pending or sum(found.values()) != job.deliveries:
        raise Failed(f"of {job.deliveries} deliveries {found} were settled and {pending} are pending")
    if job.insert and count(job.url, "SELECT count(*) FROM mine") != found["applied"]:
        raise Failed("the handlers' own rows are not as many as the deliveries that were applied")
    return {"seconds": seconds, "outcomes": found}
