"""Runs one step of one contender in a process of its own: `python -m benchmarks.drain.contender NAME STEP`.

The job comes as JSON on stdin, since the URL in it may hold a password.

Every contender is a module with `prepare(job)`, which fills a fresh database, and `work(job)`, which settles
everything and returns the seconds it took. The server is put to rest between the two. Rivals with settings that their
documentation leaves to be found by trying list them in `VARIANTS`, the first being their default; each is tried on
CALIBRATION jobs beforehand, and the fastest is used.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any

from benchmarks.processes import end_with_parent

MODULES = {
    "ours": "benchmarks.drain.ours",
    "plain": "benchmarks.drain.plain",
    "pgqueuer": "benchmarks.drain.with_pgqueuer",
    "oban": "benchmarks.drain.with_oban",
    "procrastinate": "benchmarks.drain.with_procrastinate",
}


@dataclass(frozen=True)
class Job:
    """What is to be drained, and how.

    Args:
        url: of the database; a SQLAlchemy URL, which is libpq's apart from its beginning.
        deliveries: how many are pending.
        workers: processes.
        resources: that the deliveries are about.
        body: bytes of each payload.
        batch: of plain psycopg and pgqueuer; ours has its default.
        insert: whether each handler makes an INSERT of its own.
        engine: of ours: "sync" or "async".
        variant: settings of a rival.
    """

    url: str
    deliveries: int
    workers: int = 2
    resources: int = 1000
    body: int = 800
    batch: int = 100
    insert: bool = False
    engine: str = "sync"
    variant: dict[str, Any] = field(default_factory=dict)

    @property
    def dsn(self) -> str:
        """The URL as libpq and asyncpg take it."""
        return self.url.replace("postgresql+psycopg://", "postgresql://", 1)


def main() -> None:
    """Run what the arguments say, and print what it returns as JSON."""
    end_with_parent(os.getppid())
    name, step = sys.argv[1:]
    module = importlib.import_module(MODULES[name])
    print(json.dumps(getattr(module, step)(Job(**json.load(sys.stdin)))))


def as_json(job: Job) -> str:
    """The job as `main` reads it."""
    return json.dumps(dataclasses.asdict(job))


if __name__ == "__main__":
    main()
