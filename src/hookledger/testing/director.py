"""Standing between workers and their connections, to decide when each goes on and when one dies.

It listens to SQLAlchemy's events of the workers' engines: the workers themselves are those of production and know
nothing of it. https://docs.sqlalchemy.org/en/20/core/events.html
"""

from __future__ import annotations

import enum
import re
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import psycopg
from sqlalchemy import Connection, Engine, event

from hookledger.ledger.repository import Repository
from hookledger.worker.transaction import HandlerConnection

LONGEST_SHOWN = 110  # characters of a statement
END_SECONDS = 10.0
PAUSE = 0.001
_PARAMETER = re.compile(r"%\((\w+)\)[sbt](?:::[\w ]+(?:\[\])?)?")


class Kind(enum.Enum):
    """What a transaction of a worker is for."""

    CLAIM = "claim"
    WORK = "work"
    OTHER = "other"


class Script(Protocol):
    """What is to happen at the points that workers come by."""

    def before_statement(self, who: int, connection: HandlerConnection) -> None:
        """A handler of a worker is about to run a statement."""

    def before_commit(self, who: int, connection: HandlerConnection, kind: Kind) -> None:
        """A worker is about to commit."""


class Director:
    """Calls the script that is set at the moment, and writes down what happens.

    Args:
        engines: one for each worker.
        schema: of the ledger.
    """

    def __init__(self, engines: Sequence[Engine], schema: str) -> None:
        self.script: Script | None = None
        self.seen: list[str] = []
        """What the workers did while a script was set, in words."""
        sql = Repository.of(schema).sql
        self._kinds = {
            sql.settle: Kind.WORK,
            sql.write_failures: Kind.WORK,
            sql.take: Kind.CLAIM,
            sql.claim_one: Kind.CLAIM,
        }
        self._kind = [Kind.OTHER] * len(engines)
        self._heard: list[tuple[Engine, str, Any]] = []
        for who, engine in enumerate(engines):
            for name, hear in (
                ("begin", self._begun),
                ("before_cursor_execute", self._statement),
                ("commit", self._commit),
            ):
                listener = partial(hear, who)
                event.listen(engine, name, listener)
                self._heard.append((engine, name, listener))

    def close(self) -> None:
        """Hear no more."""
        for engine, name, listener in self._heard:
            event.remove(engine, name, listener)

    def note(self, who: int, what: str) -> None:
        """Write down what a worker did."""
        self.seen.append(f"worker {who + 1}: {what}")

    def _begun(self, who: int, _: Connection) -> None:
        self._kind[who] = Kind.OTHER

    def _statement(self, who: int, connection: Connection, _: Any, statement: str, *rest: Any) -> None:
        if not isinstance(connection, HandlerConnection):
            return
        if statement in self._kinds:
            self._kind[who] = self._kinds[statement]
        if connection.running and self.script is not None:
            self.script.before_statement(who, connection)
            self.note(who, in_words(statement))

    def _commit(self, who: int, connection: Connection) -> None:
        if isinstance(connection, HandlerConnection) and self.script is not None:
            kind = self._kind[who]
            self.script.before_commit(who, connection, kind)
            if kind is Kind.WORK:
                self.note(who, "COMMIT")


def in_words(statement: str) -> str:
    """A statement in one line, with parameters as people write them."""
    line = _PARAMETER.sub(r":\1", " ".join(statement.split()))
    return line if len(line) <= LONGEST_SHOWN else f"{line[: LONGEST_SHOWN - 3]}..."


def backend_of(connection: HandlerConnection) -> int:
    """The process id of a connection at the server."""
    return int(connection._driver().pgconn.backend_pid)


class Observer:
    """Looks at, and ends, the connections of others, over one of its own.

    Args:
        connection: psycopg's, in autocommit mode.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def is_blocked(self, backend: int) -> bool:
        """Whether a connection waits for a lock that another one has."""
        row = self._connection.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [backend]).fetchone()
        return bool(row and row[0])

    def end(self, backend: int) -> None:
        """End a connection, and wait until the server has rolled back what it did not commit."""
        self._connection.execute("SELECT pg_terminate_backend(%s)", [backend])
        # The function itself can wait as well, but looks ten times a second only.
        until = time.monotonic() + END_SECONDS
        while time.monotonic() < until:
            row = self._connection.execute("SELECT count(*) FROM pg_stat_get_activity(%s)", [backend]).fetchone()
            if row == (0,):
                return
            time.sleep(PAUSE)

    def end_all(self) -> None:
        """End all other connections to the database."""
        self._connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()
