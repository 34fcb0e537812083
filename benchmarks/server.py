"""The PostgreSQL server that all contenders share, and a database of its own for every run."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql
from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.pool import NullPool

from benchmarks.database import dsn, first_value
from benchmarks.report import Failed, tell
from hookledger import migrate
from hookledger.embedded import EmbeddedPostgres
from hookledger.engine import database_url

# As a server of this size would be set up: no checkpoint in the middle of a run. All contenders have the same.
SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "max_connections": "200",
}
DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
TOLD = (*DURABLE, "shared_buffers", "max_wal_size", "wal_level", "wal_sync_method", "commit_delay")


class Server:
    """A running server.

    Args:
        url: of a database to connect to, as a role that may create databases.
    """

    def __init__(self, url: URL) -> None:
        self._url = url
        with self._connection() as connection:
            self.version = str(first_value(connection, "SHOW server_version"))
            self.settings = {name: str(first_value(connection, f"SHOW {name}")) for name in TOLD}
        off = [name for name in DURABLE if self.settings[name] == "off"]
        if off:
            raise Failed(f"the server has {' and '.join(off)} off, so nothing would be durable: set it to on")

    def url_of(self, database: str) -> str:
        """The SQLAlchemy URL of a database of this server."""
        return self._url.set(database=database).render_as_string(hide_password=False)

    @contextmanager
    def database(self, *, ledger: bool = False) -> Iterator[str]:
        """A fresh database for one run, dropped after it.

        Args:
            ledger: whether the tables of hookledger are in it.

        Yields:
            Its SQLAlchemy URL.
        """
        name = f"hookledger_benchmark_{secrets.token_hex(4)}"
        self._run(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            url = self.url_of(name)
            if ledger:
                engine = create_engine(url, poolclass=NullPool)
                migrate.upgrade(engine)
                engine.dispose()
            yield url
        finally:
            self._run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _connection(self) -> psycopg.Connection:
        return psycopg.connect(dsn(self._url.render_as_string(hide_password=False)), autocommit=True)

    def _run(self, statement: sql.Composed) -> None:
        with self._connection() as connection:
            connection.execute(statement)


@contextmanager
def running_server() -> Iterator[Server]:
    """The server of DATABASE_URL, or an embedded one that lives as long as the benchmark."""
    if os.environ.get("DATABASE_URL"):
        yield Server(database_url())
        return
    tell("starting an embedded PostgreSQL")
    with EmbeddedPostgres(settings=SETTINGS) as embedded:
        yield Server(make_url(embedded.url))
