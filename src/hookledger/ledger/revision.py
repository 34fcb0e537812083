"""The revision that the code needs, known without Alembic: receivers and workers do not import it."""

from __future__ import annotations

import shlex

from sqlalchemy import Connection, column, select, table

from hookledger.inbox import DEFAULT_SCHEMA
from hookledger.ledger.schema import VERSION_TABLE

NEWEST = "hookledger_0002"
"""The newest revision in `hookledger_migrations`."""


def read_revision(connection: Connection, schema: str) -> str | None:
    """The revision of a ledger whose version table is there; None if the table is empty."""
    versions = table(VERSION_TABLE, column("version_num"), schema=schema)
    found: str | None = connection.execute(select(versions.c.version_num)).scalar()
    return found


def command(words: str, schema: str) -> str:
    """A command of ours as somebody has to type it, for an error that says what to do."""
    place = "" if schema == DEFAULT_SCHEMA else f" --schema {shlex.quote(schema)}"
    return f"`hookledger {words}{place}`"
