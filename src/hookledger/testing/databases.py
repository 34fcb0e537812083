"""Databases with a ledger in them, each made in a few hundredths of a second from a template, and dropped after."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from sqlalchemy import URL, Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from hookledger import migrate
from hookledger.engine import create, database_url, unreachable
from hookledger.errors import SetupError

Prepare = Callable[[Connection], Any]

MOST_TEMPLATES = 8
NO_CREATEDB = "42501"
DEADLOCK_TIMEOUT = "ALTER DATABASE {} SET deadlock_timeout = '20ms'"
"""Handlers that lock in different orders are found out sooner than after PostgreSQL's second. Only a superuser may.
https://www.postgresql.org/docs/current/runtime-config-locks.html#GUC-DEADLOCK-TIMEOUT"""

SERVER_SETTINGS = {
    # A database that lives as long as a test need not survive a power failure.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
}
"""For an embedded server that only tests use."""


@dataclass(frozen=True)
class LedgerDatabase:
    """A database with the tables of the ledger, and yours.

    Args:
        url: postgresql+psycopg://..., with the password if there is one.
        schema: of the ledger.
    """

    url: str
    schema: str

    @cached_property
    def engine(self) -> Engine:
        """A synchronous engine on it; it is disposed of after the test."""
        return create(self.url, application_name="hookledger testing")

    def __str__(self) -> str:
        return self.url


class Databases:
    """Makes and drops databases with names that nobody else uses.

    Args:
        server_url: a database of the server to connect to, as a role that may create databases. That database itself
            is left alone.
    """

    def __init__(self, server_url: URL | str) -> None:
        self._url = database_url(server_url)
        self._session = secrets.token_hex(4)
        self._made = 0
        self._templates: dict[tuple[str, Prepare | None], str] = {}
        self._engine = create_engine(self._url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        self._opened: Connection | None = None

    @contextmanager
    def database(self, schema: str, prepare: Prepare | None = None) -> Iterator[LedgerDatabase]:
        """A fresh database, dropped at the end of the block with all connections to it.

        Args:
            schema: of the ledger.
            prepare: makes your tables and first rows, given a connection whose transaction is committed after. It runs
                once; each database is then a copy.

        Raises:
            DatabaseUnreachable: if the server does not answer.
            SetupError: if the role may not create databases.
            Whatever `prepare` raises.
        """
        name = self._create(self._template(schema, prepare))
        with contextlib.suppress(DBAPIError):
            self._run(DEADLOCK_TIMEOUT.format(_quoted(name)))
        database = LedgerDatabase(self._url_of(name), schema)
        try:
            yield database
        finally:
            database.engine.dispose()
            self._drop(name)

    def close(self) -> None:
        """Drop the templates and let go of the server."""
        for template in self._templates.values():
            self._drop(template)
        self._templates.clear()
        if self._opened is not None:
            self._opened.close()
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _template(self, schema: str, prepare: Prepare | None) -> str:
        found = self._templates.get((schema, prepare))
        if found is not None:
            return found
        while len(self._templates) >= MOST_TEMPLATES:
            # Whoever makes a new function for each test gets a new template for each.
            self._drop(self._templates.pop(next(iter(self._templates))))
        name = self._create("template1")
        engine = create_engine(self._url_of(name), poolclass=NullPool)
        try:
            migrate.upgrade(engine, schema=schema)
            if prepare is not None:
                with engine.begin() as connection:
                    prepare(connection)
        except BaseException:
            self._drop(name)
            raise
        self._templates[schema, prepare] = name
        return name

    def _create(self, template: str) -> str:
        self._made += 1
        name = f"hookledger_test_{self._session}_{self._made}"
        try:
            self._run(f"CREATE DATABASE {_quoted(name)} TEMPLATE {_quoted(template)}")
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != NO_CREATEDB:
                raise
            raise SetupError(
                f"the role {self._url.username!r} may not create databases: give DATABASE_URL a role that may "
                "(ALTER ROLE ... CREATEDB), or unset it to test on an embedded server"
            ) from error
        return name

    def _drop(self, name: str) -> None:
        self._run(f"DROP DATABASE IF EXISTS {_quoted(name)} WITH (FORCE)")

    def _run(self, statement: str) -> None:
        if self._opened is None or self._opened.invalidated or self._opened.closed:
            try:
                self._opened = self._engine.connect()
            except DBAPIError as error:
                raise unreachable(self._url, error) from error
        self._opened.exec_driver_sql(statement.replace("%", "%%"))

    def _url_of(self, name: str) -> str:
        return self._url.set(database=name).render_as_string(hide_password=False)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
