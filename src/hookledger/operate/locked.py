"""No waiting for a lock without end, and a sentence that says who holds it.

Readers wait for nobody but those who have a table in ACCESS EXCLUSIVE mode, and for those who ask for it: ALTER TABLE,
VACUUM FULL, LOCK TABLE and the like. Whoever has to do so at night should be told, and not be left waiting.
https://www.postgresql.org/docs/current/explicit-locking.html#LOCKING-TABLES
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, Row, event, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from hookledger.errors import HookledgerError
from hookledger.ledger.failure import sqlstate

LOCK_SECONDS = 5.0
"""How long a lock is waited for."""
LOCK_NOT_AVAILABLE = "55P03"

# Statements are not shown: they may hold what is secret.
_HOLDERS = text(
    """
    SELECT held.pid, bool_or(held.granted) AS granted, bool_and(held.mode <> 'AccessExclusiveLock') AS only_rows,
        min(relname) AS name, count(DISTINCT held.relation) AS number,
        coalesce(usename, '-') AS role, coalesce(nullif(application_name, ''), 'no application_name') AS program,
        coalesce(state, '-') AS state
    FROM pg_catalog.pg_locks AS held
    JOIN pg_catalog.pg_class AS class ON class.oid = held.relation
    JOIN pg_catalog.pg_namespace AS place ON place.oid = class.relnamespace
    JOIN pg_catalog.pg_database AS here ON here.oid = held.database
    LEFT JOIN pg_catalog.pg_stat_activity AS activity ON activity.pid = held.pid
    WHERE held.locktype = 'relation' AND nspname = :schema AND here.datname = current_database()
        AND held.pid IS DISTINCT FROM pg_backend_pid()
        AND (held.mode = 'AccessExclusiveLock'
            OR held.granted AND relname = :rows_of AND held.mode IN ('RowShareLock', 'RowExclusiveLock'))
    GROUP BY held.pid, usename, application_name, state
    ORDER BY 2 DESC, 1
    LIMIT 3
    """
)


class Locked(HookledgerError):
    """Somebody else holds a lock on the ledger. The message says who, and how to get rid of that."""


def wait_briefly(connection: Connection) -> None:
    """Let no statement of this transaction wait for a lock for longer than LOCK_SECONDS."""
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS * 1000:.0f}ms'")


def bounded(engine: Engine) -> Engine:
    """The same engine, with `wait_briefly` in each of its transactions. Use it within `telling_who`."""
    found = engine.execution_options()
    event.listen(found, "begin", wait_briefly)
    return found


@contextmanager
def telling_who(engine: Engine, schema: str, *, first: str = "", rows_of: str | None = None) -> Iterator[None]:
    """Say who holds the lock that a statement of the block has not got in time.

    Args:
        engine: of the ledger's database. It must have a connection left when the error leaves the block.
        schema: where the ledger is.
        first: what is said before, such as what was done.
        rows_of: the name of a table of which the block may wait for rows, too.

    Raises:
        Locked: in place of the database's error.
    """
    try:
        yield
    except DBAPIError as error:
        if sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise
        raise Locked(f"{first}{_in_words(_holders(engine, schema, rows_of), schema)}") from error


@contextmanager
def reading(engine: Engine, schema: str) -> Iterator[Engine]:
    """An engine with which to read, that waits for no lock without end.

    Raises:
        Locked: if it would have to.
    """
    with telling_who(engine, schema):
        yield bounded(engine)


def _holders(engine: Engine, schema: str, rows_of: str | None) -> list[Row[tuple[object, ...]]]:
    try:
        with engine.connect() as connection:
            return list(connection.execute(_HOLDERS, {"schema": schema, "rows_of": rows_of}))
    except SQLAlchemyError:
        return []


def _in_words(holders: list[Row[tuple[object, ...]]], schema: str) -> str:
    if not holders:
        return f"somebody had locked a part of the ledger for {LOCK_SECONDS:g} s: run this again"
    told = []
    for held in holders:
        place = f"{schema}.{held.name}" + (f" and {held.number - 1} more" if held.number > 1 else "")
        program = f"process {held.pid} (role {held.role}, {held.program}, {held.state})"
        who = "a prepared transaction" if held.pid is None else program
        if held.only_rows:
            told.append(f"{who} has locked rows of {place}")
        elif held.granted:
            told.append(f"{who} has locked {place}")
        else:
            told.append(f"{who} waits to lock {place}, and others wait behind it")
    ends = [f"SELECT pg_terminate_backend({held.pid})" for held in holders if held.pid is not None]
    ends += ["COMMIT PREPARED or ROLLBACK PREPARED (pg_prepared_xacts has its name)"] * (len(ends) < len(holders))
    return f"{'; '.join(told)}: wait until that has ended, or end it with {', '.join(ends)}, then run this again"
