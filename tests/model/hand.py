"""One worker of a replay: its connection, and the thread in which a statement of it may wait."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from sqlalchemy import Connection, NestedTransaction
from sqlalchemy.exc import DBAPIError

from tests.processes import wait_until


class Hand:
    """One worker: its connection, and the thread in which a statement of it may wait."""

    def __init__(self, index: int, engine: Any, control: Connection) -> None:
        self.index = index
        self._engine = engine
        self._control = control
        self._thread = ThreadPoolExecutor(1)
        self.running: Future[Any] | None = None
        self.savepoint: NestedTransaction | None = None
        self.connect()

    def connect(self) -> None:
        """Take a new connection."""
        self.connection: Connection = self._engine.connect()
        self.pid = int(self.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
        self.connection.rollback()

    def start(self, function: Callable[[], Any]) -> None:
        """Run something that may wait."""
        self.running = self._thread.submit(function)

    def waits(self) -> bool:
        """Whether its statement waits for a lock."""
        query = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %(pid)s"
        return bool(self._control.exec_driver_sql(query, {"pid": self.pid}).scalar_one())

    def result(self) -> Any:
        """What the statement that was started gave."""
        running, self.running = self.running, None
        assert running is not None
        return running.result(60)

    def cut(self) -> None:
        """End its backend, and connect anew."""
        self._control.exec_driver_sql("SELECT pg_terminate_backend(%(pid)s)", {"pid": self.pid})
        gone = "SELECT count(*) FROM pg_stat_activity WHERE pid = %(pid)s"
        wait_until(lambda: not self._control.exec_driver_sql(gone, {"pid": self.pid}).scalar_one())
        if self.running is not None:
            with contextlib.suppress(DBAPIError):
                self.result()
        self.savepoint = None
        self.connection.invalidate()
        self.connection.close()
        self.connect()

    def close(self) -> None:
        """Let go of everything."""
        self._thread.shutdown()
        self.connection.close()
