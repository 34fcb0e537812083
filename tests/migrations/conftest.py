"""Fixtures for migrations: an engine on an empty database, roles, and a revision that comes after the newest."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import URL, Engine, make_url, text

import hookledger_migrations
from hookledger import engine as engines
from hookledger import migrate
from hookledger.embedded import EmbeddedPostgres

NEXT_REVISION = '''
"""A table that comes later."""

import sqlalchemy as sa

revision = "hookledger_9999"
down_revision = "{head}"
branch_labels = None
depends_on = None


def upgrade(op, schema):
    op.create_table("later", sa.Column("id", sa.BigInteger, primary_key=True), schema=schema)


def downgrade(op, schema):
    op.drop_table("later", schema=schema)
'''


@pytest.fixture
def make_engine() -> Iterator[Callable[[str | URL], Engine]]:
    """Makes engines that are disposed of at the end."""
    made: list[Engine] = []

    def make(url: str | URL) -> Engine:
        made.append(engines.create(url))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()


@pytest.fixture
def empty_engine(empty_database_url: str, make_engine: Callable[[str | URL], Engine]) -> Engine:
    """An engine on a fresh database with nothing in it."""
    return make_engine(empty_database_url)


@pytest.fixture
def make_role(empty_engine: Engine) -> Iterator[Callable[[], URL]]:
    """Makes roles that may do nothing, and gives the URL by which each logs in to the empty database."""
    made: list[str] = []

    def make() -> URL:
        role, password = f"hookledger_test_{secrets.token_hex(4)}", secrets.token_hex(8)
        with empty_engine.begin() as connection:
            connection.execute(
                text(f"CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD '{password}'")
            )
        made.append(role)
        return make_url(empty_engine.url).set(username=role, password=password)

    yield make
    with empty_engine.begin() as connection:
        for role in made:
            connection.execute(text(f"DROP OWNED BY {role} CASCADE"))
            connection.execute(text(f"DROP ROLE {role}"))


@pytest.fixture
def own_server_role(own_server: EmbeddedPostgres) -> Callable[[str], URL]:
    """Makes a role that logs in with the given password, which this server asks for, and gives its URL."""

    def make(password: str) -> URL:
        with psycopg.connect(
            make_url(own_server.url).set(drivername="postgresql").render_as_string(False)
        ) as connection:
            statement = sql.SQL("CREATE ROLE app LOGIN PASSWORD {}").format(sql.Literal(password))
            connection.execute(statement)
        return make_url(own_server.tcp_url_of("postgres")).set(username="app", password=password)

    return make


@pytest.fixture
def next_revision_ini(tmp_path: Path) -> Path:
    """An ini file for `alembic -c` that knows one revision more than the code."""
    versions = tmp_path / "versions"
    shutil.copytree(Path(hookledger_migrations.__file__).parent / "versions", versions)
    (versions / "hookledger_9999.py").write_text(NEXT_REVISION.format(head=migrate.head()))
    ini = tmp_path / "next.ini"
    ini.write_text(migrate.ini() + f"path_separator = newline\nversion_locations = {versions}\n")
    return ini
