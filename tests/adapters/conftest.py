"""Served receivers: one of each kind for all tests that take it as it is, and others made to order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.adapters.kinds import KINDS
from tests.adapters.served import Served, serving
from tests.databases import Databases

Serve = Callable[..., Served]


@pytest.fixture(scope="session")
def servers(databases: Databases) -> Iterator[Callable[[str], Served]]:
    """A receiver of a kind without options, started when it is first asked for."""
    started: dict[str, Served] = {}
    with ExitStack() as stack:

        def server(kind: str) -> Served:
            if kind not in started:
                url = databases.create(databases.template)
                stack.callback(databases.drop, url)
                started[kind] = stack.enter_context(serving(kind, url))
            return started[kind]

        yield server


@pytest.fixture(params=KINDS)
def served(request: pytest.FixtureRequest, servers: Callable[[str], Served]) -> Served:
    """A receiver without options; the test runs over every kind of server."""
    return servers(request.param)


@pytest.fixture
def serve(database_url: str) -> Iterator[Serve]:
    """Serves a receiver of a kind, with options, until the end of the test."""
    with ExitStack() as stack:

        def make(kind: str, **options: Any) -> Served:
            return stack.enter_context(serving(kind, options.pop("database_url", database_url), **options))

        yield make
