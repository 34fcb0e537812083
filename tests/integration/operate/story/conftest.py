"""Fixtures for looking at a ledger: one with a table for what handlers write, and an engine to look through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine

from tests.outcomes import Ledger


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """A ledger with nothing in it."""
    ledger = Ledger(database_url)
    yield ledger
    ledger.engine.dispose()


@pytest.fixture
def operator(database_url: str) -> Iterator[Engine]:
    """The engine of whoever looks."""
    engine = create_engine(database_url)
    yield engine
    engine.dispose()
