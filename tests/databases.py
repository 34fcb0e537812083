"""Databases of the tests' own on one server, each made in a few hundredths of a second from a template."""

from __future__ import annotations

import secrets
from types import TracebackType
from typing import Self

from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from hookledger import migrate

SCHEMA = "hookledger"


class Databases:
    """Makes and drops databases with names that nobody else uses.

    Args:
        server_url: a database of the server to connect to, as a role that may create databases.
    """

    def __init__(self, server_url: str) -> None:
        self._url = make_url(server_url).set(drivername="postgresql+psycopg")
        self._session = secrets.token_hex(4)
        self._made = 0
        self._engine = create_engine(self._url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        self._connection = self._engine.connect()
        self.template = make_url(self.create()).database
        engine = create_engine(self.url_of(self.template), poolclass=NullPool)
        migrate.upgrade(engine, schema=SCHEMA)

    def url_of(self, database: str | None) -> str:
        """The URL of one of our databases."""
        return self._url.set(database=database).render_as_string(hide_password=False)

    def create(self, template: str | None = "template1") -> str:
        """Make a database, and return its URL."""
        self._made += 1
        database = f"hookledger_test_{self._session}_{self._made}"
        self._connection.execute(text(f'CREATE DATABASE "{database}" TEMPLATE "{template}"'))
        return self.url_of(database)

    def drop(self, url: str) -> None:
        """Drop a database, with all connections to it."""
        self._connection.execute(text(f'DROP DATABASE IF EXISTS "{make_url(url).database}" WITH (FORCE)'))

    def close(self) -> None:
        """Drop the template and let go of the server."""
        self.drop(self.url_of(self.template))
        self._connection.close()
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def query(url: str, statement: str) -> object:
    """The first value that the statement gives, over a connection of its own; it is committed."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        result = connection.execute(text(statement))
        return result.scalar() if result.returns_rows else None
