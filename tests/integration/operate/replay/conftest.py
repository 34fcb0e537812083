"""Fixtures of replays: a shop whose handlers can be broken and mended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.replaying import Shop


@pytest.fixture
def shop(database_url: str) -> Iterator[Shop]:
    """A ledger with nothing in it, and the shop's handlers."""
    shop = Shop(database_url)
    yield shop
    shop.close()
