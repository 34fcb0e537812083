"""Transactions that hold up receivers and workers for a moment at the most, and are tried again later instead.

Whoever waits for a strong lock makes all others wait behind him, so the wait is bounded and the work too.
https://www.postgresql.org/docs/current/runtime-config-client.html#GUC-LOCK-TIMEOUT
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import DBAPIError

from hookledger.errors import HookledgerError
from hookledger.ledger.failure import is_conflict, sqlstate
from hookledger.ledger.prepare import NO_ADVISORY_LOCKS
from hookledger.ledger.rights import quoted

Result = TypeVar("Result")

TOO_LONG = frozenset({"55P03", "57014"})
"""lock_not_available, query_canceled: our own limits."""


LONGEST_SILENCE = "10s"
SILENT = "25P03"
"""idle_in_transaction_session_timeout: the server has ended the connection, and taken back what was not committed."""


class Busy(HookledgerError):
    """The tables were in use each time. Nothing was done; it is tried again at the next run."""


class Stopped(HookledgerError):
    """The work was told to stop between two steps; what it did is committed."""


class Another(Exception):
    """Somebody else does the same work on this ledger now."""


@dataclass(frozen=True)
class Patience:
    """How long a step may hold up others, and how often it is tried.

    Args:
        lock: seconds that it waits for a lock.
        statement: seconds that one statement of it may take.
        idle: seconds that the server waits for its next statement before it ends the connection, and so its locks.
            Others of this process may wait for them in a way that keeps the next statement from being sent.
        tries: how often it is tried.
        pause: seconds between two tries.
        sleep: how to wait; an asynchronous caller gives one that lets its loop go on.
        stopping: whether to end.
    """

    lock: float = 0.2
    statement: float = 1.0
    idle: float = 2.0
    tries: int = 20
    pause: float = 0.3
    sleep: Callable[[float], None] = time.sleep
    stopping: Callable[[], bool] = field(default=lambda: False)

    def go_on(self) -> None:
        """Say whether to go on.

        Raises:
            Stopped: if not.
        """
        if self.stopping():
            raise Stopped("stopped; what was done so far is committed")

    def step(self, engine: Engine, work: Callable[[Connection], Result], what: str) -> Result:
        """Do one step in a transaction of its own.

        Args:
            engine: synchronous, or the synchronous side of an asynchronous one.
            work: its statements.
            what: it is called in the error.

        Raises:
            Busy: if it met others each time.
            Stopped: when told to, between two tries.
        """
        for left in reversed(range(self.tries)):
            self.go_on()
            try:
                with self.transaction(engine) as connection:
                    return work(connection)
            except DBAPIError as error:
                if not (is_conflict(error) or sqlstate(error) in TOO_LONG):
                    raise
                if not left:
                    said = f"{what}: the tables were in use at each of {self.tries} tries; try again later"
                    raise Busy(said) from error
            self.sleep(self.pause)
        raise AssertionError("unreachable")

    @contextmanager
    def transaction(self, engine: Engine) -> Iterator[Connection]:
        """A transaction with these limits, at READ COMMITTED, whose times and dates are written in UTC."""
        with engine.connect().execution_options(isolation_level="READ COMMITTED") as connection, connection.begin():
            connection.execute(
                text(
                    "SELECT pg_catalog.set_config('lock_timeout', :lock, true),"
                    " pg_catalog.set_config('statement_timeout', :statement, true),"
                    " pg_catalog.set_config('idle_in_transaction_session_timeout', :idle, true),"
                    " pg_catalog.set_config('TimeZone', 'UTC', true),"
                    " pg_catalog.set_config('DateStyle', 'ISO, YMD', true)"
                ),
                {
                    "lock": f"{self.lock * 1000:.0f}ms",
                    "statement": f"{self.statement * 1000:.0f}ms",
                    "idle": f"{self.idle * 1000:.0f}ms",
                },
            )
            yield connection


def is_first(connection: Connection, schema: str, work: str) -> bool:
    """Whether nobody else does this work on the ledger now; then nobody will until the end of the transaction.

    On a server without advisory locks always true: each piece of the work can be done by two at a time.
    """
    digest = hashlib.sha256(f"hookledger {work} {schema}".encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    try:
        with connection.begin_nested():
            return bool(connection.scalar(select(func.pg_catalog.pg_try_advisory_xact_lock(key))))
    except DBAPIError as error:
        if sqlstate(error) not in NO_ADVISORY_LOCKS:
            raise
        return True


def keep_unsettled(connection: Connection, schema: str) -> None:
    """Let nobody make a delivery pending or dead, or settle one, until the end of the transaction.

    Between a look at what is pending and the removal of what is not, a replay could make it pending again.
    """
    place = quoted(schema)
    # Names in quotes may hold what text() takes for a parameter.
    names = f"{place}.pending, {place}.dead_letters".replace(":", "\\:")
    connection.execute(text(f"LOCK TABLE {names} IN SHARE MODE"))


def keep_there(connection: Connection, schema: str) -> None:
    """Let nobody prune or erase what is settled until the end of the transaction, and wait for whoever is at it.

    To be called before the look at what is made pending: what goes between the look and the new row would leave a row
    in pending of which there is no delivery.
    """
    place = quoted(schema)
    names = f"{place}.pending, {place}.dead_letters".replace(":", "\\:")
    connection.execute(text(f"LOCK TABLE {names} IN ROW EXCLUSIVE MODE"))


def end_if_silent(connection: Connection) -> None:
    """Have the server end this transaction, and so its locks, if the client says nothing for a while: a process that
    is stopped, as by Ctrl-Z, must not hold up receivers until somebody wakes it."""
    connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{LONGEST_SILENCE}'")
