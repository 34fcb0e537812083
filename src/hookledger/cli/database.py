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
