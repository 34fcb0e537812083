"""Fixtures for the worker: a ledger, the ways to run handlers, and a table for what they write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hookledger import Inbox
from tests.outcomes import Ledger
from tests.ways import WAYS, Way

Work = Callable[..., None]


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """A ledger with nothing in it, and beside it the table `written`, which takes an event as often as it comes."""
    ledger = Ledger(database_url)
    ledger.execute("CREATE TABLE written (event_id text, handler text, note text)")
    yield ledger
    ledger.engine.dispose()


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    """Each way to run handlers in turn."""
    way: Way = request.param
    return way


@pytest.fixture
def work(way: Way, database_url: str) -> Work:
    """Runs a worker with the given inbox until nothing is due."""

    def run(inbox: Inbox, **options: Any) -> None:
        way.work(database_url, inbox, **options)

    return run
