"""Fixtures for tests with worker processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.concurrency.workers import Workplace


@pytest.fixture
def workplace(database_url: str) -> Iterator[Workplace]:
    """A ledger with nothing in it, to be worked on by processes."""
    workplace = Workplace(database_url)
    yield workplace
    workplace.engine.dispose()
