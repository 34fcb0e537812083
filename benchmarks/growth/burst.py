"""A burst of deliveries in flight while the database stands still: memory, refusals, and whether anything is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.database import dsn
from benchmarks.growth.rates import row
from benchmarks.processes import ROOT, allow_many_descriptors
from benchmarks.receive.serving import missing, serving
from benchmarks.report import Failed, tell
from benchmarks.server import Server

SPARE_DESCRIPTORS = 500
BODY = 1000
MIB = 1024 * 1024
SAMPLE_EVERY = 0.02
LOCK = "LOCK TABLE hookledger.deliveries IN ACCESS EXCLUSIVE MODE"


def of_bursts(server: Server, engine: str, bursts: Sequence[int], held: float) -> list[dict[str, Any]]:
    """One burst after the other, each to a receiver of its own.

    Args:
        server: to measure on.
        engine: of the receiver, Starlette under uvicorn.
        bursts: deliveries of each. As many as the limit of open files allows are in flight at once, the others
            follow as answers come.
        held: seconds for which the table of deliveries is locked, so that nothing can be committed.
    """
    return [_burst(server, engine, deliveries, held) for deliveries in bursts]


def _burst(server: Server, engine: str, deliveries: int, held: float) -> dict[str, Any]:
    connections = min(deliveries, allow_many_descriptors() - SPARE_DESCRIPTORS)
    with (
        server.database(ledger=True) as url,
        tempfile.TemporaryDirectory() as folder,
        serving("ours", url, engine) as (port, pid),
    ):
        file = Path(folder) / "acknowledged"
        arguments = [str(argument) for argument in (port, connections, deliveries, BODY, file)]
        with subprocess.Popen(
            [sys.executable, "-m", "benchmarks.growth.burst_client", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            if client.stdout.readline().strip() != "connected":
                raise Failed("the client of the burst could not connect; see above for what it said")
            memory = _Memory(pid)
            with psycopg.connect(dsn(url)) as connection:
                connection.execute(LOCK)
                client.stdin.write("go\n")
                client.stdin.flush()
                memory.watch(held)
            while client.poll() is None:
                memory.watch(SAMPLE_EVERY)
            result = json.loads(client.stdout.read())
        lost = missing(url, file, "hookledger.")
    refused = result["statuses"].pop("503", 0)
    answered = result["statuses"].pop("200", 0)
    tell(f"burst of {deliveries:,}: {answered:,} acknowledged, {refused:,} refused, {lost} lost")
    return row(
        deliveries=deliveries,
        in_flight=connections,
        memory_before_mib=memory.before / MIB,
        memory_most_mib=memory.most / MIB,
        acknowledged=answered,
        refused_503=refused,
        with_retry_after=result["told_to_come_again"],
        other_answers=sum(result["statuses"].values()),
        acknowledged_but_lost=lost,
        seconds=result["seconds"],
    )


class _Memory:
    """The resident memory of a process, from when all connections are open."""

    def __init__(self, pid: int) -> None:
        import psutil  # type: ignore[import-untyped]

        self._process = psutil.Process(pid)
        self.before = self.most = int(self._process.memory_info().rss)

    def watch(self, seconds: float) -> None:
        """Look again and again for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.most = max(self.most, int(self._process.memory_info().rss))
            time.sleep(SAMPLE_EVERY)
