"""Engines for the ledger: which URLs are taken, and how a dead server is noticed.

The connection settings are libpq's: https://www.postgresql.org/docs/current/libpq-connect.html
"""

from __future__ import annotations

import os
from typing import Any, Literal, overload

from sqlalchemy import URL, Connection, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from hookledger.errors import DatabaseNotGiven, DatabaseUnreachable, SetupError

DRIVER = "postgresql+psycopg"
TAKEN = ("postgresql", "postgres", DRIVER)
EXAMPLE = "postgresql://user:password@host/database"

CONNECTION_SETTINGS: dict[str, Any] = {
    # Seconds to wait for a server that does not answer; a receiver has to say 503 within 5.
    "connect_timeout": 3,
    # A peer that vanished without a word is noticed after about 20 seconds on an idle connection (10 until
    # the first probe, then the timeout below), and after 10 seconds where data waits to be acknowledged.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}
PREPARE = "prepare_threshold"
POOL_TIMEOUT = 3.0  # seconds to wait for a free connection, for the same reason as connect_timeout


def database_url(given: URL | str | None = None) -> URL:
    """The URL of the database, from the argument or else from the environment variable DATABASE_URL.

    Args:
        given: postgresql://, postgres:// or postgresql+psycopg://; special characters of the password are
            percent-encoded, as in every URL.

    Raises:
        DatabaseNotGiven: if there is none.
        SetupError: if it is for another database or driver, or cannot be read without doubt.
    """
    if not isinstance(given, URL):
        text = (given or os.environ.get("DATABASE_URL") or "").strip()
        if not text:
            raise DatabaseNotGiven(f"no database is given: set DATABASE_URL or --database-url, e.g. {EXAMPLE}")
        try:
            given = make_url(text)
        except (ArgumentError, ValueError):
            # The reason is left out: it would repeat a part of the URL, which may be a part of the password.
            raise SetupError(
                f"the database URL cannot be read: write {EXAMPLE}, with special characters of the password "
                "percent-encoded, such as @ as %40"
            ) from None
        in_doubt = _splits_password(text)
    else:
        in_doubt = "@" in (given.host or "")
    if in_doubt:
        # Read as it stands, the end of the password would be a part of the host, which is no secret.
        raise SetupError(
            "the database URL has an @ within its password, or after its host: percent-encode it as %40, so that the "
            f"only @ after the password is the one before the host, as in {EXAMPLE}"
        )
    if given.drivername not in TAKEN:
        raise SetupError(
            f"the database URL is for {given.drivername}, but hookledger works on PostgreSQL through psycopg: "
            f"write {EXAMPLE}"
        )
    return given.set(drivername=DRIVER)


def _splits_password(text: str) -> bool:
    """Whether a URL with a password has an @ behind the one at which the password ends when it is read."""
    _, _, rest = text.partition("://")
    _, _, after_user = rest.partition(":")
    _, _, after_password = after_user.partition("@")
    return "@" in after_password


def describe(url: URL) -> str:
    """The database and its server as a person names them, without user and password."""
    host = url.host or url.query.get("host") or os.environ.get("PGHOST") or "the local socket"
    if not isinstance(host, str):
        host = ",".join(host)
    port = url.port or url.query.get("port")
    database = url.database or url.query.get("dbname") or url.username
    name = f"database {database!r}" if database else "the default database"
    return f"{name} at {host}" + (f":{port}" if port else "")


def unreachable(url: URL, error: DBAPIError) -> DatabaseUnreachable:
    """The error to raise when a connection cannot be made or is lost, with the server and its reason."""
    lines = [line.strip() for line in str(error.orig).splitlines() if line.strip()]
    reason = lines[0] if lines else type(error.orig).__name__
    if url.password:
        reason = reason.replace(str(url.password), "***")
    return DatabaseUnreachable(
        f"cannot reach {describe(url)}: {reason.rstrip('.')}; start the server or correct DATABASE_URL"
    )


def connect(engine: Engine) -> Connection:
    """A connection of the engine.

    Raises:
        DatabaseUnreachable: if none can be made, with the server and its reason.
    """
    try:
        return engine.connect()
    except DBAPIError as error:
        raise unreachable(engine.url, error) from error


@overload
def create(
    url: URL | str | None = None,
    *,
    asynchronous: Literal[False] = False,
    pool_size: int = 5,
    application_name: str = "hookledger",
) -> Engine: ...


@overload
def create(
    url: URL | str | None = None,
    *,
    asynchronous: Literal[True],
    pool_size: int = 5,
    application_name: str = "hookledger",
) -> AsyncEngine: ...


def create(
    url: URL | str | None = None,
    *,
    asynchronous: bool = False,
    pool_size: int = 5,
    application_name: str = "hookledger",
) -> Engine | AsyncEngine:
    """An engine for the ledger. It connects when it is first used.

    Args:
        url: as `database_url` takes it; None reads DATABASE_URL. Settings in the URL's query, such as
            ?sslmode=require or ?connect_timeout=10, win over those made here. ?prepare_threshold=none is for a
            pooler in transaction mode that knows no prepared statements, such as pgbouncer before 1.22:
            https://www.psycopg.org/psycopg3/docs/advanced/prepare.html#using-prepared-statements-with-pgbouncer
        asynchronous: whether to give an AsyncEngine.
        pool_size: how many connections there are at the most. Who comes when all are in use waits
            3 seconds, then gets `sqlalchemy.exc.TimeoutError`.
        application_name: how the connections are named in pg_stat_activity.

    Raises:
        SetupError: if the URL is missing, or for another database or driver.
    """
    url = database_url(url)
    settings = {**CONNECTION_SETTINGS, "application_name": application_name}
    connect_args = {name: value for name, value in settings.items() if name not in url.query}
    if PREPARE in url.query:
        connect_args[PREPARE] = _prepare_threshold(url.query[PREPARE])
        url = url.difference_update_query([PREPARE])
    options: dict[str, Any] = {
        "connect_args": connect_args,
        "pool_size": pool_size,
        "max_overflow": 0,
        "pool_timeout": POOL_TIMEOUT,
        # One round trip a checkout (measured: 0.05 ms on the same machine), and there is one checkout for a
        # whole batch. Without it every connection that a restart or a proxy has closed costs a sender a 503.
        "pool_pre_ping": True,
        # Bodies, headers and states are parameters; without this they would be in every database error.
        "hide_parameters": True,
    }
    return create_async_engine(url, **options) if asynchronous else create_engine(url, **options)


def _prepare_threshold(value: str | tuple[str, ...]) -> int | None:
    if value == "none":
        return None
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    raise SetupError(f"{PREPARE} in the database URL must be a number of executions, or none")
