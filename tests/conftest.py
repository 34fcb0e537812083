"""Fixtures: a PostgreSQL server, and a database of its own for every test that asks for one.

The server is the one of DATABASE_URL if that is set (the role must be allowed to create databases), else an
embedded one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from hookledger.embedded import EmbeddedPostgres
from tests.databases import Databases

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# fsync and synchronous_commit stay as they are: what the tests show has to hold with them.
SERVER_SETTINGS = {"shared_buffers": "64MB", "max_connections": "200"}

MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 4 * 1024**3
"""Bytes that must be free there: each process of the tests has a server, of some hundred megabytes at the most."""

AnyEngine = Engine | AsyncEngine


@contextmanager
def temporary_files_in_memory() -> Iterator[None]:
    """Make temporary files in memory within the block, if there is room: a database is made there in a fifth of the
    time, for it has some hundred files."""
    before = tempfile.tempdir
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_NEEDED:
        tempfile.tempdir = str(MEMORY)
    try:
        yield
    finally:
        tempfile.tempdir = before


class Cluster(NamedTuple):
    """The data folder of an embedded server that is stopped.

    Args:
        folder: to be copied.
        database: the name of one with the tables of the ledger.
    """

    folder: Path
    database: str


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[EmbeddedPostgres | None]:
    """The embedded server that all tests share; None if DATABASE_URL names another. Do not stop it: take
    `own_server` for that."""
    if os.environ.get("DATABASE_URL"):
        yield None
        return
    server = EmbeddedPostgres(settings={**SERVER_SETTINGS, "max_wal_size": "256MB"})
    with temporary_files_in_memory():
        server.start()
    with server:
        yield server


@pytest.fixture(scope="session")
def databases(postgres_server: EmbeddedPostgres | None) -> Iterator[Databases]:
    """Makes databases on the server that all tests share."""
    server_url = postgres_server.url if postgres_server else os.environ["DATABASE_URL"]
    with Databases(server_url) as databases:
        yield databases


@pytest.fixture(scope="session")
def hookledger_server_url(postgres_server: EmbeddedPostgres | None) -> str:
    """The same server for the databases of `hookledger.testing`."""
    return postgres_server.url if postgres_server else os.environ["DATABASE_URL"]


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """A fresh database with the tables of the ledger."""
    url = databases.create(databases.template)
    yield url
    databases.drop(url)


@pytest.fixture
def empty_database_url(databases: Databases) -> Iterator[str]:
    """A fresh database with nothing in it."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """A synchronous engine on a fresh database with the tables of the ledger."""
    engine = create_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def async_engine_factory(database_url: str) -> Iterator[Callable[[], AsyncEngine]]:
    """Makes asynchronous engines on the database of `database_url`. Make one inside the event loop that uses it."""
    engines: list[AsyncEngine] = []

    def make() -> AsyncEngine:
        engines.append(create_async_engine(database_url))
        return engines[-1]

    yield make
    for engine in engines:
        asyncio.run(engine.dispose())


@pytest.fixture(params=["sync", "async"])
def any_engine(request: pytest.FixtureRequest) -> AnyEngine:
    """An engine on a fresh database: the test runs with a synchronous and with an asynchronous one."""
    if request.param == "sync":
        engine: Engine = request.getfixturevalue("engine")
        return engine
    factory: Callable[[], AsyncEngine] = request.getfixturevalue("async_engine_factory")
    return factory()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """What the servers of tests that need one of their own are copied from, which is much faster than initdb."""
    with tempfile.TemporaryDirectory(prefix="hl-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with EmbeddedPostgres(folder / "server", settings=SERVER_SETTINGS) as server:
            databases = Databases(server.url)
            database = make_url(databases.create(databases.template)).database
            databases.close()
        yield Cluster(folder / "server", str(database))


@pytest.fixture
def own_server(cluster: Cluster, open_folder: Path) -> Iterator[EmbeddedPostgres]:
    """An embedded server for this test alone, to stop, kill and start; it listens on TCP too."""
    folder = open_folder / "server"
    subprocess.run(["cp", "-a", str(cluster.folder), str(folder)], check=True)
    with EmbeddedPostgres(folder, settings=SERVER_SETTINGS, tcp=True) as server:
        yield server


@pytest.fixture
def own_database_url(own_server: EmbeddedPostgres, cluster: Cluster) -> str:
    """A database with the tables of the ledger on `own_server`."""
    return own_server.url_of(cluster.database)


@pytest.fixture
def project_root() -> Path:
    """The folder of pyproject.toml."""
    return Path(__file__).parent.parent


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every account can enter, which those that pytest makes are not."""
    with tempfile.TemporaryDirectory(prefix="hl-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
