"""What an error of the database means: a conflict to try again, an outage, or somebody's fault.

Codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

CONFLICTS = frozenset({"40001", "40P01"})
"""serialization_failure, deadlock_detected: nobody's fault, tried again at once."""

OUTAGES = frozenset(
    {
        "25006",  # read_only_sql_transaction: the primary has become a standby
        "25P03",  # idle_in_transaction_session_timeout
        "25P04",  # transaction_timeout
        "55P03",  # lock_not_available, met by a statement of ours
        "57014",  # query_canceled: statement_timeout, met by a statement of ours
        "57P01",  # admin_shutdown
        "57P02",  # crash_shutdown
        "57P03",  # cannot_connect_now
        "57P04",  # database_dropped
        "57P05",  # idle_session_timeout
        "58030",  # io_error
    }
)
HINDRANCES = frozenset(
    {
        "25P04",  # transaction_timeout
        "53200",  # out_of_memory
        "55P03",  # lock_not_available
        "57014",  # query_canceled
    }
)
"""Outages that a smaller piece of the same work may escape."""

DISTRESS = frozenset(
    {
        "53100",  # disk_full
        "53200",  # out_of_memory
        "58030",  # io_error
    }
)
"""Outages that a statement of a handler meets on a connection that lives. Seldom its own fault, but it may be."""

ADMIN_SHUTDOWN, CRASH_SHUTDOWN = "57P01", "57P02"
SHUTDOWNS = frozenset({ADMIN_SHUTDOWN, CRASH_SHUTDOWN})
"""The server ends the connection: because somebody wants it to, or because another of its processes has crashed."""

CANCELLED = "57014"
"""query_canceled: a time limit, or somebody who broke it off."""

UNMIGRATED = frozenset({"3F000", "42703", "42P01"})
"""invalid_schema_name, undefined_column, undefined_table."""

OUTAGE_CLASSES = ("08", "53")
"""connection_exception; insufficient_resources: disk full, out of memory, too many connections."""


def sqlstate(error: BaseException) -> str | None:
    """The five-character code that PostgreSQL gave, if it gave one."""
    original = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(original, "sqlstate", None)
    return code if isinstance(code, str) else None


def is_conflict(error: BaseException) -> bool:
    """Whether the transaction met another one and simply has to be run again."""
    return sqlstate(error) in CONFLICTS


def is_rerouted(error: BaseException) -> bool:
    """Whether a row was refused because a partition for it was attached just now: a new try finds that one. Met by a
    statement of ours; no table of ours has another check."""
    return sqlstate(error) == "23514"


def is_outage(error: BaseException) -> bool:
    """Whether the database, and not the work given to it, is the cause. Met by one of our own statements."""
    if isinstance(error, PoolTimeout | OSError):
        return True
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    code = sqlstate(error)
    if code is None:
        # The client noticed it before the server could say anything.
        return isinstance(error, OperationalError | InterfaceError)
    return code in OUTAGES or code.startswith(OUTAGE_CLASSES)


def is_hindrance(error: BaseException) -> bool:
    """Whether it took too long or too much, so that less at a time may succeed."""
    return sqlstate(error) in HINDRANCES


def is_distress(error: BaseException) -> bool:
    """Whether the server has run out of something, whoever's statement noticed it."""
    return sqlstate(error) in DISTRESS


def is_unmigrated(error: BaseException) -> bool:
    """Whether the ledger, or a part of it, is not there. Met by one of our own statements."""
    return sqlstate(error) in UNMIGRATED


def shutdown_told(error: BaseException) -> str | None:
    """The code by which the server said that it shuts down, if that is what the error is."""
    code = sqlstate(error)
    return code if code in SHUTDOWNS else None


def is_demoted(error: BaseException) -> bool:
    """Whether the server has become a standby: the connection is sound, but leads to the wrong server."""
    return sqlstate(error) == "25006"


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone, whoever's statement noticed it."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or (is_outage(error) and (sqlstate(error) or "57P01")[:2] in {"08", "57"})
    return isinstance(error, SQLAlchemyError) and isinstance(error, PoolTimeout)
