"""Served receivers: one of each kind for all tests that send to it as it is, and others made to order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.adapters.kinds import KINDS
from tests.adapters.served import Served, serving
from tests.databases import Databases

Serve = Callable[..., Served]


@pytest.fixture(scope="session", params=KINDS)
def served(request: pytest.FixtureRequest, databases: Databases) -> Iterator[Served]:
    """A receiver with the default settings; the test runs over every kind of server."""
    url = databases.create(databases.template)
    with serving(request.param, url) as served:
        yield served
    databases.drop(url)


@pytest.fixture
def serve(database_url: str) -> Iterator[Serve]:
    """Serves a receiver of a kind, with options, until the end of the test."""
    with ExitStack() as stack:

        def make(kind: str, **options: Any) -> Served:
            return stack.enter_context(serving(kind, options.pop("database_url", database_url), **options))

        yield make
