"""Engines of the commands, closed when the command ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Engine


@contextmanager
def engine_of(database_url: str | None) -> Iterator[Engine]:
    """An engine for one command that works alone.

    Args:
        database_url: as given on the command line or in DATABASE_URL.

    Raises:
        SetupError: if it is missing, or for another database or driver.
    """
    from hookledger.engine import create

    engine = create(database_url, pool_size=1)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def bounded_engine_of(database_url: str | None, schema: str) -> Iterator[Engine]:
    """An engine for one command that has to answer soon: the ledger is there, and no lock is waited for without end.

    Args:
        database_url: as given on the command line or in DATABASE_URL.
        schema: where the ledger is.

    Raises:
        SetupError: as `engine_of`, and as `open_ready`.
        Locked: if a lock was waited for too long, also within the block.
    """
    from hookledger.ledger.ready import open_ready
    from hookledger.operate.locked import reading

    with engine_of(database_url) as engine, reading(engine, schema) as reader:
        open_ready(reader, schema)
        yield reader
