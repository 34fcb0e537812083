"""A receiver under its server in a process of its own, and whether what it acknowledged is in the database."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from benchmarks.database import dsn
from benchmarks.processes import ROOT
from benchmarks.report import Failed

START_SECONDS = 30.0
BACKLOG = 4096


def missing(url: str, file: Path, schema: str) -> int:
    """How many of the acknowledged events have no delivery, no payload or are not pending."""
    with psycopg.connect(dsn(url)) as connection:
        connection.execute("CREATE TEMPORARY TABLE acknowledged (event_id text)")
        with connection.cursor().copy("COPY acknowledged FROM STDIN") as copy:
            copy.write(file.read_bytes())
        found = connection.execute(
            f"""
            SELECT count(*) FROM acknowledged a
            LEFT JOIN {schema}deliveries d ON d.event_id = a.event_id
            LEFT JOIN {schema}payloads p ON p.id = d.payload_id AND p.received_at = d.received_at
            LEFT JOIN {schema}pending q ON q.delivery_id = d.id
            WHERE p.id IS NULL OR q.delivery_id IS NULL
            """.encode()
        ).fetchone()
        assert found is not None
        return int(found[0])


@contextmanager
def serving(receiver: str, url: str, engine: str, uvicorn: str = "standard") -> Iterator[tuple[int, int]]:
    """A receiver in a process of its own.

    Args:
        receiver: its name in `serve`.
        url: of its database.
        engine: of ours under uvicorn: "sync" or "async".
        uvicorn: "plain": h11 on asyncio; "standard": httptools on uvloop.

    Yields:
        Its port, and its process id.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listening:
        port = int(listening.getsockname()[1])
        descriptor = listening.fileno()
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.receive.serve", receiver, str(descriptor), engine, uvicorn],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": url},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            pass_fds=[descriptor],
        )
    try:
        _wait_for(process, port)
        yield port, process.pid
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Failed(f"the receiver ended with status {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
            probe.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            if probe.recv(12).startswith(b"HTTP/1.1"):
                return
    raise Failed(f"the receiver did not come up within {START_SECONDS:.0f} seconds")
