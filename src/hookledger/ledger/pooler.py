"""A pooler in front of the server that hands each transaction to any of its connections (D13).

The names of prepared statements are then met by clients that never made them, unless the pooler translates them, as
pgbouncer does from 1.21 on if it is told to.
https://www.pgbouncer.org/features.html
https://www.psycopg.org/psycopg3/docs/advanced/prepare.html#using-prepared-statements-with-pgbouncer
"""

from __future__ import annotations

import contextlib
from inspect import isawaitable
from typing import Any

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError
from sqlalchemy.util import await_only

from hookledger.engine import describe, unreachable
from hookledger.errors import SetupError

CONFUSED = frozenset({"26000", "42P05"})
"""invalid_sql_statement_name, duplicate_prepared_statement."""

PROBE = "SELECT pg_catalog.pg_backend_pid()"
REMEDY = "add ?prepare_threshold=none to the database URL"


def is_confused(error: BaseException) -> bool:
    """Whether prepared statements of several clients meet each other on one connection of the server."""
    return getattr(getattr(error, "orig", error), "sqlstate", None) in CONFUSED


def check_prepared_statements(connection: Connection) -> None:
    """See that prepared statements work through what is between us and the server. One trip, if nothing is.

    Args:
        connection: open; its transaction is ended.

    Raises:
        SetupError: if a pooler has them meet those of another client.
        DatabaseUnreachable: if the server went away.
    """
    connection.commit()
    driver: Any = connection.connection.driver_connection
    if driver.prepare_threshold is None:
        return
    try:
        # The number that a pooler gives as its own is not that of a process of the server.
        backend = _value(driver.execute(PROBE, prepare=False))
        if backend == driver.info.backend_pid:
            return
        _value(driver.execute(PROBE, prepare=True))
        # A rollback would have the driver take its prepared statements back.
        connection.connection.commit()
        parameters = {**driver.info.get_parameters(), "password": driver.info.password or None}
        # The connection of the server that was just ours is the first that another client gets.
        with psycopg.connect(**parameters) as another:
            try:
                another.execute(PROBE, prepare=True)
            finally:
                with contextlib.suppress(psycopg.Error):
                    another.rollback()
                    another.execute("DEALLOCATE ALL")
    except psycopg.Error as error:
        if not is_confused(error):
            wrapped = OperationalError("the probe of prepared statements", None, error)
            raise unreachable(connection.engine.url, wrapped) from error
        raise SetupError(
            f"{describe(connection.engine.url)} is a pooler that hands each transaction to another connection of the "
            f"server, where prepared statements meet those of other clients: {REMEDY}"
        ) from error
    finally:
        with contextlib.suppress(psycopg.Error):
            connection.connection.rollback()


def _value(ran: Any) -> Any:
    cursor = await_only(ran) if isawaitable(ran) else ran
    fetched = cursor.fetchone()
    row = await_only(fetched) if isawaitable(fetched) else fetched
    return row[0]
