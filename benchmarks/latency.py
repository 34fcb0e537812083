"""`python -m benchmarks latency`: from the commit of a receipt to the start of its handler, on an idle system.

One delivery at a time: it is received by a receiver in this process, and the clock runs from the moment at which the
receiver is told of the commit. A worker in a process of its own, with default settings, says when its handler was
called. Both read CLOCK_MONOTONIC, which is the same in all processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from random import Random
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from benchmarks.database import settle_down
from benchmarks.processes import end_with_parent
from benchmarks.report import Failed, machine, tell, versions
from benchmarks.server import running_server
from hookledger import Delivery, Inbox, Request, hmac_source
from hookledger.engine import create
from hookledger.receive import Intake
from hookledger.sources.source import Source
from hookledger.worker import Worker, WorkerSettings

SOURCE = "benchmark"
SPARE_CONNECTIONS = 2
WARM_UP = 5
"""Deliveries that are not counted."""
PATIENCE = 30.0
"""Seconds to wait for a handler, or for the worker to come up."""
READY = "ready"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.set_defaults(runs=1)
    parser.add_argument("--deliveries", type=int, default=250, help="that are timed, in each run")
    parser.add_argument("--pause", type=float, default=0.4, help="seconds between two, on average")
    parser.add_argument("--idle-seconds", type=float, default=30.0, help="for which the idle worker is watched")
    parser.add_argument("--engine", choices=("sync", "async"), default="sync", help="of the worker")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, and return the result."""
    waits: list[float] = []
    requests: list[float] = []
    shares: list[float] = []
    with running_server() as server:
        for _ in range(options.runs):
            with server.database(ledger=True) as url:
                settle_down(url)
                with _worker(url, options.engine) as (pid, pipe):
                    _measure(url, pipe, options, waits, requests)
                    tell(f"{len(waits)} deliveries timed; watching the idle worker")
                    shares.append(_cpu_percent(pid, options.idle_seconds))
        told = ("runs", "deliveries", "pause", "idle_seconds", "engine")
        ratios = {
            "p50_ms": _percentile(waits, 50),
            "p99_ms": _percentile(waits, 99),
            "idle_cpu_percent": round(max(shares), 3),
        }
        return {
            "benchmark": "latency",
            **ratios,
            "ratios": ratios,
            "commit_to_handler_ms": _summary(waits),
            "request_to_handler_ms": _summary(requests),
            "options": {name: getattr(options, name) for name in told},
            "machine": machine(),
            "server": server.settings,
            "versions": versions(server.version),
        }


def _measure(url: str, pipe: Pipe, options: argparse.Namespace, waits: list[float], requests: list[float]) -> None:
    """Receive deliveries one by one, and add the milliseconds from the commit, and from the request."""
    source = _source()
    engine = create(url)
    intake = Intake(Inbox(source), engine)
    # The same pauses in every run. They are as long as the worker's own polls, and not in step with them.
    random = Random(1)
    try:
        for number in range(WARM_UP + options.deliveries):
            time.sleep(random.uniform(0.5, 1.5) * options.pause)
            event_id = f"evt_{number}"
            request = _request(source, event_id)
            before = time.monotonic_ns()
            response = intake.receive_blocking(request)
            committed = time.monotonic_ns()
            if response.status != 200:
                raise Failed(f"the receiver answered {response.status}")
            if not pipe.poll(PATIENCE):
                raise Failed(f"no handler was called within {PATIENCE:.0f} seconds")
            handled_id, handled = pipe.recv()
            if handled_id != event_id:
                raise Failed(f"the handler was called for {handled_id!r} instead of {event_id!r}")
            if number >= WARM_UP:
                waits.append((handled - committed) / 1e6)
                requests.append((handled - before) / 1e6)
    finally:
        intake.close()
        engine.dispose()


@contextmanager
def _worker(url: str, engine: str) -> Iterator[tuple[int, Pipe]]:
    """A worker in a process of its own: its process id, and the pipe on which it says when a handler began."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(os.getpid(), url, engine == "async", theirs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(PATIENCE) or ours.recv() != READY:
            raise Failed("the worker did not come up")
        yield int(process.pid or 0), ours
    except EOFError:
        raise Failed("the worker has ended; see above for what it said") from None
    finally:
        process.terminate()
        process.join()


def _work(parent: int, url: str, asynchronous: bool, pipe: Pipe) -> None:
    end_with_parent(parent)
    inbox = Inbox(_source())
    register = inbox.accumulate(SOURCE, name="note")
    if asynchronous:

        async def note_async(delivery: Delivery, tx: AsyncConnection) -> None:
            pipe.send((delivery.event_id, time.monotonic_ns()))

        register(note_async)
    else:

        def note(delivery: Delivery, tx: Connection) -> None:
            pipe.send((delivery.event_id, time.monotonic_ns()))

        register(note)

    async def main() -> None:
        settings = WorkerSettings()
        size = settings.slots + SPARE_CONNECTIONS
        engine = create(url, asynchronous=True, pool_size=size) if asynchronous else create(url, pool_size=size)
        worker = Worker(inbox, engine, settings)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        pipe.send(READY)
        await worker.run()
        if isinstance(engine, AsyncEngine):
            await engine.dispose()
        else:
            engine.dispose()

    asyncio.run(main())


def _cpu_percent(pid: int, seconds: float) -> float:
    """The share of one core that a process takes for a while."""
    import psutil  # type: ignore[import-untyped]

    process = psutil.Process(pid)
    # What the last delivery left to do is not idleness.
    time.sleep(min(2.0, seconds / 4))
    begin, start = process.cpu_times(), time.perf_counter()
    time.sleep(seconds)
    end, elapsed = process.cpu_times(), time.perf_counter() - start
    return float(100 * (end.user + end.system - begin.user - begin.system) / elapsed)


def _source() -> Source:
    return hmac_source(SOURCE, header="X-Signature", secrets="benchmark")


def _request(source: Source, event_id: str) -> Request:
    assert source.sign is not None
    body = json.dumps({"id": event_id, "type": "ping", "more": "m" * 740}).encode()
    return Request(SOURCE, "POST", source.sign(body, time.time()), body)


def _percentile(values: list[float], percent: int) -> float:
    """The smallest value that so many percent do not exceed."""
    ordered = sorted(values)
    return round(ordered[max(0, -(-len(ordered) * percent // 100) - 1)], 3)


def _summary(values: list[float]) -> dict[str, float]:
    found = {f"p{percent}": _percentile(values, percent) for percent in (50, 90, 99, 100)}
    return {"least": round(min(values), 3), **found}
