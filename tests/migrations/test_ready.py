"""What is told at start about a server or ledger that cannot be worked with."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Engine, make_url, text
from sqlalchemy.exc import DBAPIError

from hookledger import engine as engines
from hookledger import migrate
from hookledger.embedded import EmbeddedPostgres
from hookledger.errors import DatabaseUnreachable, SchemaError, SetupError
from hookledger.ledger import ready
from hookledger.ledger.ready import check_ready, open_ready, open_ready_asynchronously
from hookledger.ledger.revision import NEWEST
from hookledger.ledger.schema import VERSION_TABLE
from tests.faults.trips import Trip, Trips
from tests.processes import Child

MakeEngine = Callable[[str | URL], Engine]


def execute(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


def test_a_migrated_ledger_is_ready(empty_engine: Engine) -> None:
    migrate.upgrade(empty_engine, schema="My-Hooks")
    open_ready(empty_engine, "My-Hooks")
    with empty_engine.connect() as connection:
        check_ready(connection, "My-Hooks")
        assert connection.in_transaction()


def test_an_asynchronous_engine_is_asked_the_same(empty_database_url: str, empty_engine: Engine) -> None:
    async def ask(schema: str) -> None:
        engine = engines.create(empty_database_url, asynchronous=True)
        try:
            await open_ready_asynchronously(engine, schema)
            async with engine.connect() as connection:
                await connection.run_sync(check_ready, schema)
        finally:
            await engine.dispose()

    migrate.upgrade(empty_engine)
    asyncio.run(ask("hookledger"))
    with pytest.raises(SchemaError, match="no schema 'hooks'"):
        asyncio.run(ask("hooks"))


def test_receivers_and_workers_know_the_newest_revision_and_import_no_alembic() -> None:
    assert migrate.head() == NEWEST
    program = (
        "import sys, hookledger_flask, hookledger_starlette, hookledger.worker; sys.exit('alembic' in sys.modules)"
    )
    with Child("-c", program) as child:
        assert child.wait() == 0, child.output


def test_a_missing_schema_or_ledger_asks_for_an_upgrade(empty_engine: Engine) -> None:
    with pytest.raises(SchemaError, match=r"no schema 'My-Hooks' .*: run `hookledger db upgrade --schema My-Hooks`"):
        open_ready(empty_engine, "My-Hooks")
    execute(empty_engine, "CREATE SCHEMA hookledger")
    with pytest.raises(SchemaError, match=r"no ledger in the schema 'hookledger' .*: run `hookledger db upgrade`"):
        open_ready(empty_engine, "hookledger")
    migrate.upgrade(empty_engine)
    migrate.downgrade(empty_engine, revision="base")
    with pytest.raises(SchemaError, match="run `hookledger db upgrade`"):
        open_ready(empty_engine, "hookledger")


def test_a_ledger_newer_than_the_code_is_neither_used_nor_changed(
    empty_database_url: str, empty_engine: Engine, next_revision_ini: Path
) -> None:
    command = ["-m", "alembic", "-c", str(next_revision_ini), "upgrade", "head"]
    with Child(*command, env={"DATABASE_URL": empty_database_url}) as alembic:
        assert alembic.wait() == 0, alembic.output
    for ask in (open_ready, migrate.check):
        with pytest.raises(SchemaError, match=r"at hookledger_9999, newer than this hookledger"):
            ask(empty_engine, "hookledger")
    with pytest.raises(SchemaError, match="hookledger_9999"):
        migrate.upgrade(empty_engine)
    assert migrate.current(empty_engine) == "hookledger_9999"


def test_a_ledger_older_than_the_code_asks_for_an_upgrade(
    empty_engine: Engine, next_revision_ini: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate.upgrade(empty_engine)
    old = migrate.head()
    newer_code = ScriptDirectory.from_config(Config(next_revision_ini))
    monkeypatch.setattr(migrate, "_script", lambda: newer_code)
    monkeypatch.setattr(ready, "NEWEST", "hookledger_9999")
    with pytest.raises(SchemaError, match=f"is at {old}, the code needs hookledger_9999: run `hookledger db upgrade`"):
        open_ready(empty_engine, "hookledger")
    migrate.upgrade(empty_engine)
    open_ready(empty_engine, "hookledger")
    migrate.downgrade(empty_engine, revision=old)
    assert migrate.current(empty_engine) == old
    assert "later" in migrate.sql(revision=f"{old}:head")
    assert "payloads" not in migrate.sql(revision=f"{old}:head")


def test_a_table_that_was_dropped_is_named(empty_engine: Engine) -> None:
    migrate.upgrade(empty_engine)
    execute(empty_engine, "DROP TABLE hookledger.failures")
    with pytest.raises(SchemaError, match="lacks failures"):
        open_ready(empty_engine, "hookledger")


def test_a_server_that_does_not_answer_is_named_without_the_password(make_engine: MakeEngine) -> None:
    with pytest.raises(DatabaseUnreachable) as raised:
        open_ready(make_engine("postgresql://somebody:top-secret@127.0.0.1:1/hooks"), "hookledger")
    assert "database 'hooks' at 127.0.0.1:1: " in str(raised.value)
    assert "refused" in str(raised.value)
    assert "top-secret" not in str(raised.value)


def test_a_database_that_is_not_there_is_named(empty_engine: Engine, make_engine: MakeEngine) -> None:
    with pytest.raises(DatabaseUnreachable, match='"no such" does not exist'):
        open_ready(make_engine(empty_engine.url.set(database="no such")), "hookledger")
    for ask in (migrate.upgrade, migrate.current, migrate.check):
        with pytest.raises(DatabaseUnreachable, match='"no such" does not exist'):
            ask(make_engine(empty_engine.url.set(database="no such")))


def test_a_connection_that_is_lost_meanwhile_is_told(empty_engine: Engine) -> None:
    migrate.upgrade(empty_engine)
    with empty_engine.connect() as connection, empty_engine.connect() as other:
        process = connection.connection.dbapi_connection.info.backend_pid  # type: ignore[union-attr]
        other.execute(text("SELECT pg_terminate_backend(:process, 60000)"), {"process": process})
        with pytest.raises(DatabaseUnreachable, match="terminating connection"):
            check_ready(connection, "hookledger")


def test_a_server_that_takes_no_writes_is_told(
    empty_database_url: str, empty_engine: Engine, make_engine: MakeEngine
) -> None:
    migrate.upgrade(empty_engine)
    read_only = make_url(empty_database_url).update_query_dict({"options": "-cdefault_transaction_read_only=on"})
    with pytest.raises(SetupError, match="takes no writes"):
        open_ready(make_engine(read_only), "hookledger")


def test_a_standby_is_told() -> None:
    with EmbeddedPostgres() as server:
        engine = engines.create(server.url)
        with engine.connect() as connection:
            folder = Path(str(connection.execute(text("SHOW data_directory")).scalar()))
        server.halt()
        # https://www.postgresql.org/docs/current/warm-standby.html#STANDBY-SERVER-OPERATION
        (folder / "standby.signal").touch()
        server.start()
        with pytest.raises(SetupError, match="is a standby, which takes no writes: give the URL of the primary"):
            open_ready(engine, "hookledger")
        engine.dispose()


def test_an_old_server_is_told(empty_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate.upgrade(empty_engine)
    monkeypatch.setattr(ready, "OLDEST_SERVER", 99)
    with pytest.raises(SetupError, match=r"is PostgreSQL \d+: hookledger needs 99 or newer"):
        open_ready(empty_engine, "hookledger")


def test_the_version_table_is_the_ledgers_own(empty_engine: Engine) -> None:
    migrate.upgrade(empty_engine)
    execute(empty_engine, f"UPDATE hookledger.{VERSION_TABLE} SET version_num = 'hookledger_0000'")
    with pytest.raises(SchemaError, match="at hookledger_0000, newer than this"):
        open_ready(empty_engine, "hookledger")


def test_a_connection_that_is_cut_during_the_look_is_told_once(
    empty_engine: Engine, empty_database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """At whichever of its steps, before it and after."""
    migrate.upgrade(empty_engine)

    def cut(trip: Trip) -> None:
        execute(empty_engine, f"SELECT pg_terminate_backend({trip.backend}, 10000)")

    struck = 0
    with Trips(empty_database_url) as trips:
        for before, after in ((cut, None), (None, cut)):
            for number in range(1, 30):
                trips.strike_at(number, before=before, after=after)
                looking = engines.create(trips.url)
                with contextlib.suppress(DatabaseUnreachable, DBAPIError, psycopg.Error):
                    open_ready(looking, "hookledger")
                looking.dispose()
                if trips.struck is None:
                    break
                struck += 1
    assert struck > 8
    assert [record.message for record in caplog.records if record.name.startswith("sqlalchemy.pool")] == []
