"""Receivers of the tests, each test run over the three ways in which adapters call them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from hookledger.receive import IntakeSettings
from tests.ledger import Ledger
from tests.receiving import WAYS, Receiving

MakeReceiving = Callable[..., Receiving]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """How the receiver is called."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def make_receiving(way: str, database_url: str) -> Iterator[MakeReceiving]:
    """Makes receivers, on the database of `ledger` if no other URL is given."""
    with ExitStack() as stack:

        def make(url: str = database_url, **options: Any) -> Receiving:
            return stack.enter_context(Receiving(way, url, **options))

        yield make


@pytest.fixture
def receiving(make_receiving: MakeReceiving) -> Receiving:
    """A receiver that waits longer than by default, for a machine may be busy."""
    return make_receiving(settings=IntakeSettings(answer_within=60, cut_after=30))


@pytest.fixture
def ledger(database_url: str) -> Ledger:
    """The ledger that `receiving` writes to."""
    return Ledger(database_url)
