"""One database, through plain psycopg; imports nothing heavier, for plain psycopg is a contender too."""

from __future__ import annotations

import psycopg


def dsn(url: str) -> str:
    """The URL as psycopg, asyncpg and libpq take it."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


def settle_down(url: str) -> None:
    """Vacuum and analyze the database and write a checkpoint, so that each timed part begins alike."""
    with psycopg.connect(dsn(url), autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


def count(url: str, query: str) -> int:
    """The number that a query gives."""
    with psycopg.connect(dsn(url)) as connection:
        return int(str(first_value(connection, query)))


def first_value(connection: psycopg.Connection, query: str) -> object:
    """The first value that a query gives."""
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]
