"""Checks of what lies between here and the server: a pooler that gives each transaction another session.

https://www.pgbouncer.org/features.html
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Connection

from hookledger.doctor.finding import Finding, Severity, Subject
from hookledger.worker.listen import parameters_of

ROUNDS = 3
"""How often it is tried whether two connections get the same session: others may take it in between."""
HINT_SECONDS = 2.0
LOST_PREPARED = ("26000", "42P05", "08P01")
"""invalid_sql_statement_name, duplicate_prepared_statement, protocol_violation."""

_Driver = psycopg.Connection[tuple[Any, ...]]


def pooler(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """Whether transactions of one connection run in several sessions, and prepared statements are lost by that."""
    driver: Any = connection.connection.driver_connection
    with ExitStack() as stack:
        one, other = _opened(stack, driver, subject), _opened(stack, driver, subject)
        shared, lost = _shared(one, other, prepared=driver.prepare_threshold is not None)
    if lost:
        yield Finding(
            Severity.ERROR,
            "pooler",
            "a pooler in transaction mode is in front of the server, and loses prepared statements",
            "add ?prepare_threshold=none to the database URL, or take pgbouncer 1.22 or newer with "
            "max_prepared_statements above 0",
        )
    elif shared:
        yield Finding(
            Severity.NOTE,
            "pooler",
            "a pooler in transaction mode is in front of the server: what a handler leaves in the session (SET, "
            "temporary tables, session locks) is not there in the next transaction",
            "let handlers use SET LOCAL and pg_advisory_xact_lock, which end with the transaction",
        )


def hints(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """Whether a hint reaches who listens."""
    driver: Any = connection.connection.driver_connection
    with ExitStack() as stack:
        one, other = _opened(stack, driver, subject), _opened(stack, driver, subject)
        shared, _ = _shared(one, other, prepared=False)
        heard = not shared and _heard(one, other)
    if not heard:
        yield Finding(
            Severity.NOTE,
            "hints",
            "a NOTIFY does not reach who listens: an idle worker sees a delivery at its next look, a second later",
            "give workers a URL that leads past the pooler, if that is too late",
        )


def _opened(stack: ExitStack, driver: Any, subject: Subject) -> _Driver:
    parameters = {"connect_timeout": round(subject.limits.check.total_seconds()) or 1, **parameters_of(driver)}
    opened = stack.enter_context(psycopg.connect(**parameters, autocommit=True))
    opened.prepare_threshold = None
    return opened


def _shared(one: _Driver, other: _Driver, *, prepared: bool) -> tuple[bool, bool]:
    """Whether two connections that are open at the same time get the same session, and whether a statement that the one
    has prepared is lost by that."""
    statement = "SELECT %s::integer"
    for _ in range(ROUNDS):
        first = _session(one)
        if prepared:
            one.execute(statement, (1,), prepare=True)
        with other.transaction():
            if _session(other) != first:
                continue
            # The other one holds the session now, so the one gets another.
            try:
                if prepared:
                    one.execute(statement, (2,), prepare=True)
            except psycopg.Error as error:
                return True, error.sqlstate in LOST_PREPARED
            return True, False
    return False, False


def _session(connection: _Driver) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])


def _heard(one: _Driver, other: _Driver) -> bool:
    channel = f"hookledger_doctor_{secrets.token_hex(8)}"
    try:
        one.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        other.execute("SELECT pg_notify(%s, '')", (channel,))
    except psycopg.Error:
        return False
    return any(True for _ in one.notifies(timeout=HINT_SECONDS, stop_after=1))
