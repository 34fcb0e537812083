"""A program of the tests: an engine is used and a worker made, then the process forks, and each child runs that worker.

python -m tests.faults.forked_workers DATABASE_URL INBOX
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from hookledger.engine import create
from hookledger.worker import Worker, WorkerSettings
from tests.faults import hooks

CHILDREN = 3
ASK = text("SELECT pg_backend_pid()")


async def use(engine: Any) -> set[int]:
    """Use two connections of the engine at a time, and leave both in its pool; the server's processes of them."""
    if isinstance(engine, AsyncEngine):
        async with engine.connect() as one, engine.connect() as two:
            return {(await one.execute(ASK)).scalar_one(), (await two.execute(ASK)).scalar_one()}
    with engine.connect() as one, engine.connect() as two:
        return {one.execute(ASK).scalar_one(), two.execute(ASK).scalar_one()}


def main(url: str, inbox: str) -> None:
    """Fork, wait, and use what was there before."""
    engine: Any = create(url, asynchronous=True) if inbox == "asynchronous" else create(url)
    loop = asyncio.new_event_loop()
    before = loop.run_until_complete(use(engine))
    worker = Worker(getattr(hooks, inbox), engine, WorkerSettings(slots=2, batch=10))
    children = []
    for _ in range(CHILDREN):
        pid = os.fork()
        if pid == 0:
            asyncio.run(worker.run_until_idle())
            os._exit(0)
        children.append(pid)
    ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    after = loop.run_until_complete(use(engine))
    print(f"children {ended}, connections kept: {before == after}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
