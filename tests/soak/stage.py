"""What the faults fall on: a server, the proxies in front of it, receivers and workers that are started again when they
end, as a service manager does."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from hookledger import migrate
from hookledger.embedded import EmbeddedPostgres
from tests.faults.books import TABLES
from tests.processes import Child
from tests.proxy import Proxy
from tests.soak.hooks import ENDED

ROOT = Path(__file__).parents[2]
SETTINGS = {"shared_buffers": "64MB", "max_connections": "40", "wal_writer_delay": "200ms"}
RECEIVERS = ("starlette", "flask")
WORKERS = ("sync", "asynchronous", "sync")
LAST_WORDS = 1500
"""Characters of what a process printed that are told."""
USUAL = frozenset({0, ENDED, -signal.SIGKILL, -signal.SIGTERM})
"""Exit statuses of processes that were killed, stopped, or ended by a handler."""
LOOK_EVERY = 0.2
"""Seconds between two looks at whether a process has ended."""


class Process:
    """A process that is there again soon after it has ended.

    Args:
        name: for people.
        arguments: of `child`.
        url: of the database.
        listener: that it serves.
    """

    def __init__(self, name: str, arguments: list[str], url: str, listener: socket.socket | None = None) -> None:
        self.name = name
        self._arguments = arguments
        self._url = url
        self._listener = listener
        self._lock = threading.Lock()
        self._closed = False
        self.ended: list[tuple[int, str]] = []
        """The exit status, and what it had printed, each time that it has ended."""
        self._child = self._begin()

    def _begin(self) -> Child:
        descriptors = [] if self._listener is None else [self._listener.fileno()]
        arguments = [*self._arguments, *map(str, descriptors)]
        env = {"DATABASE_URL": self._url}
        return Child("-m", "tests.soak.child", *arguments, env=env, cwd=ROOT, pass_fds=descriptors)

    @property
    def port(self) -> int:
        """That it serves."""
        assert self._listener is not None
        port: int = self._listener.getsockname()[1]
        return port

    def look(self) -> None:
        """Start it again if it has ended."""
        with self._lock:
            if not self._child.running and not self._closed:
                self._note()
                self._child = self._begin()

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal; nothing happens if it has just ended."""
        with self._lock:
            self._child.signal(number)

    def _note(self) -> None:
        self.ended.append((self._child.process.returncode, self._child.output))
        self._child.close()

    def close(self) -> None:
        """End it for good."""
        with self._lock:
            self._closed = True
            told = self._child.output
            self._child.close()
            self.ended.append((self._child.process.returncode, told))


class Stage:
    """All of it, until the end of the block."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._closing = threading.Event()

    def __enter__(self) -> Self:
        with self._stack:
            self.server = self._stack.enter_context(EmbeddedPostgres(settings=SETTINGS))
            self.url = self.server.url
            engine = create_engine(self.url, poolclass=NullPool)
            migrate.upgrade(engine, schema="hookledger")
            with engine.begin() as connection:
                for table in TABLES:
                    connection.execute(text(table))
            self._control = create_engine(self.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
            self.receivers_proxy = self._stack.enter_context(Proxy(self.url))
            self.workers_proxy = self._stack.enter_context(Proxy(self.url))
            self.receivers = [self._receiver(name) for name in RECEIVERS]
            self.workers = [self._worker(number, name) for number, name in enumerate(WORKERS, 1)]
            keeper = threading.Thread(target=self._keep, daemon=True)
            keeper.start()
            self._stack.callback(keeper.join)
            self._stack.callback(self._closing.set)
            self._stack = self._stack.pop_all()
        return self

    def _receiver(self, name: str) -> Process:
        listener = self._stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=256))
        process = Process(f"receiver ({name})", ["receiver", name], self.receivers_proxy.url, listener)
        self._stack.callback(process.close)
        return process

    def _worker(self, number: int, name: str) -> Process:
        arguments = ["worker", f"tests.soak.hooks:{name}", "--slots", "2", "--batch", "20", "--grace", "5"]
        process = Process(f"worker {number} ({name})", arguments, self.workers_proxy.url)
        self._stack.callback(process.close)
        return process

    @property
    def processes(self) -> list[Process]:
        """Receivers and workers."""
        return [*self.receivers, *self.workers]

    def _keep(self) -> None:
        while not self._closing.wait(LOOK_EVERY):
            for process in self.processes:
                process.look()

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection past the proxies, which commits each statement and may write when the server is read-only."""
        with self._control.connect() as connection:
            connection.exec_driver_sql("SET default_transaction_read_only = off")
            connection.exec_driver_sql("SET lock_timeout = '10s'")
            yield connection

    def complaints(self) -> list[str]:
        """Errors that nobody has foreseen: what a process printed with a traceback, and ends by an unusual status."""
        return [
            f"{process.name} ended with {status}: {told[-LAST_WORDS:]}"
            for process in self.processes
            for status, told in process.ended
            if "Traceback" in told or (status not in USUAL and not _ended_at_its_start(told))
        ]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()


def _ended_at_its_start(told: str) -> bool:
    """Whether a process found no server when it was started: it says so, and whoever supervises it starts it again.
    What has worked once goes on by itself."""
    lines = [line for line in told.splitlines() if line.strip() and "worker ready" not in line]
    return bool(lines) and lines[0].startswith("error: ")
