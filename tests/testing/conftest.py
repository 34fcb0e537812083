"""The tables that the handlers write."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, text

from hookledger.testing.databases import Prepare
from tests.testing.shop import Base


def make_tables(connection: Connection) -> None:
    Base.metadata.create_all(connection)
    connection.execute(text("INSERT INTO sums VALUES ('all', 0)"))


@pytest.fixture(scope="session")
def hookledger_prepare() -> Prepare:
    return make_tables
