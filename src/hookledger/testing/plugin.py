"""The fixtures, which pytest finds by the entry point `hookledger`.

This module is loaded in every run of pytest of everybody who has hookledger installed: whatever a fixture needs is
imported when the fixture is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hookledger.inbox import Inbox
    from hookledger.testing.client import InboxClient, Over
    from hookledger.testing.databases import Databases, LedgerDatabase, Prepare


def pytest_addoption(parser: pytest.Parser) -> None:
    """The settings in an ini file."""
    parser.addini("hookledger_schema", "the schema of the ledger in hookledger_database", default="hookledger")


@pytest.fixture(scope="session")
def hookledger_server_url() -> Iterator[str]:
    """The URL of the server on which databases are made: that of DATABASE_URL, whose own database is left alone, else
    an embedded one that lives as long as the tests. Override it to use another."""
    given = os.environ.get("DATABASE_URL")
    if given:
        yield given
        return
    from hookledger.embedded import EmbeddedPostgres
    from hookledger.testing.databases import SERVER_SETTINGS

    with EmbeddedPostgres(settings=SERVER_SETTINGS) as server:
        yield server.url


@pytest.fixture(scope="session")
def hookledger_databases(hookledger_server_url: str) -> Iterator[Databases]:
    """Makes databases on that server."""
    from hookledger.testing.databases import Databases

    with Databases(hookledger_server_url) as databases:
        yield databases


@pytest.fixture(scope="session")
def hookledger_schema(pytestconfig: pytest.Config) -> str:
    """The schema of the ledger: `hookledger_schema` of the ini file. Override it for some tests alone."""
    return str(pytestconfig.getini("hookledger_schema"))


@pytest.fixture(scope="session")
def hookledger_prepare() -> Prepare | None:
    """Override it to have your own tables in `hookledger_database`: return a function of a SQLAlchemy Connection that
    makes them, such as `metadata.create_all`. It runs once; each database is a copy."""
    return None


@pytest.fixture
def hookledger_database(
    hookledger_databases: Databases, hookledger_schema: str, hookledger_prepare: Prepare | None
) -> Iterator[LedgerDatabase]:
    """A fresh database with the tables of the ledger and yours, for this test alone: it has a `url` and an
    `engine`."""
    with hookledger_databases.database(hookledger_schema, hookledger_prepare) as database:
        yield database


@pytest.fixture
def inbox_client(hookledger_database: LedgerDatabase) -> Iterator[Callable[..., InboxClient]]:
    """A function that gives a client of an inbox, which signs and posts as its sources would:
    `inbox_client(inbox)`, or over HTTP, `inbox_client(inbox, over="http")`."""
    from hookledger.testing.client import InboxClient, ToTheCore

    clients: list[InboxClient] = []

    def client(inbox: Inbox, *, over: Over = "core") -> InboxClient:
        if over == "http":
            from hookledger.testing.http_server import over_http

            clients.append(InboxClient(inbox, over_http(inbox, hookledger_database.engine)))
        elif over == "core":
            clients.append(InboxClient(inbox, ToTheCore(inbox, hookledger_database.engine)))
        else:
            raise ValueError(f'over={over!r} is not known: it is "core" or "http"')
        return clients[-1]

    yield client
    for made in clients:
        made.close()


@pytest.fixture
def run_worker_until_idle(hookledger_database: LedgerDatabase) -> Callable[..., Any]:
    """A function that runs the real worker on `hookledger_database` until nothing is due, and tells what it did:
    `run_worker_until_idle(inbox, now=False, slots=1, batch=200, timeout=30)`. With `now=True` what failed is tried
    again at once."""
    from hookledger.testing.idle import run_worker_until_idle

    return partial(run_worker_until_idle, hookledger_database)


@pytest.fixture
def assert_converges(hookledger_database: LedgerDatabase) -> Callable[..., None]:
    """`hookledger.testing.assert_converges` on `hookledger_database`: `assert_converges(inbox, deliveries,
    read_state)`."""
    from hookledger.testing.converge import assert_converges

    return partial(assert_converges, hookledger_database)
