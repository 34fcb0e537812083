"""A ledger for the tests of what the person on call does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.outcomes import Ledger


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """A ledger with nothing in it."""
    ledger = Ledger(database_url)
    yield ledger
    ledger.engine.dispose()
