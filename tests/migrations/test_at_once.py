"""Several that migrate at once: one works, the others wait (D13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, func, inspect, select, text

from hookledger import migrate
from hookledger.ledger.prepare import lock_key
from hookledger.ledger.schema import VERSION_TABLE
from tests.migrations.golden import outside_schema
from tests.processes import Child, wait_until

PROCESSES = 5
UPGRADE = "from hookledger import engine, migrate; migrate.upgrade(engine.create())"
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = :database"
NO_SUCH_FUNCTION = """
    ALTER FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) RENAME TO pg_advisory_xact_lock_away
"""
NOT_SUPPORTED = """
    SET allow_system_table_mods = on;
    CREATE FUNCTION pg_catalog.pg_advisory_xact_lock(key bigint) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        RAISE feature_not_supported USING MESSAGE = 'advisory locks are not yet implemented';
    END $$
"""


HOLD_UP = """
    CREATE SEQUENCE public.commands;
    CREATE FUNCTION public.hold_up() RETURNS event_trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF nextval('public.commands') = {number} THEN PERFORM pg_advisory_xact_lock_shared({gate}); END IF;
    END $$;
    CREATE EVENT TRIGGER hold_up ON ddl_command_end EXECUTE FUNCTION public.hold_up();
"""
GATE = 816


@contextmanager
def lock_held(engine: Engine, schema: str = "hookledger") -> Iterator[Callable[[int], None]]:
    """Hold the lock of the ledger; gives a function that waits until so many wait for it."""
    with engine.connect() as connection, connection.begin():
        connection.execute(select(func.pg_advisory_xact_lock(lock_key(schema))))
        # Locks are seen on the whole server, and other tests may run on it.
        database = connection.execute(text("SELECT oid FROM pg_database WHERE datname = current_database()")).scalar()

        def wait_for(count: int) -> None:
            wait_until(lambda: connection.execute(text(WAITING), {"database": database}).scalar() == count)

        yield wait_for


def all_end_well(children: list[Child]) -> None:
    for child in children:
        assert child.wait() == 0, child.output


def test_b062_five_processes_upgrade_an_empty_database(empty_database_url: str, empty_engine: Engine) -> None:
    environment = {"DATABASE_URL": empty_database_url}
    with ExitStack() as stack:
        with lock_held(empty_engine) as wait_for:
            children = [stack.enter_context(Child("-c", UPGRADE, env=environment)) for _ in range(PROCESSES)]
            wait_for(PROCESSES)
        all_end_well(children)
    migrate.check(empty_engine)


def test_b062_five_processes_upgrade_from_one_revision_behind(
    empty_database_url: str, empty_engine: Engine, next_revision_ini: Path
) -> None:
    migrate.upgrade(empty_engine)
    command = ["-m", "alembic", "-c", str(next_revision_ini), "upgrade", "head"]
    environment = {"DATABASE_URL": empty_database_url}
    with ExitStack() as stack:
        with lock_held(empty_engine) as wait_for:
            children = [stack.enter_context(Child(*command, env=environment)) for _ in range(PROCESSES)]
            wait_for(PROCESSES)
        all_end_well(children)
    assert migrate.current(empty_engine) == "hookledger_9999"
    assert inspect(empty_engine).has_table("later", schema="hookledger")


def test_five_processes_upgrade_from_the_revision_before_the_newest(
    empty_database_url: str, empty_engine: Engine
) -> None:
    migrate.upgrade(empty_engine, revision=migrate.revisions()[-2])
    with ExitStack() as stack:
        with lock_held(empty_engine) as wait_for:
            environment = {"DATABASE_URL": empty_database_url}
            children = [stack.enter_context(Child("-c", UPGRADE, env=environment)) for _ in range(PROCESSES)]
            wait_for(PROCESSES)
        all_end_well(children)
    migrate.check(empty_engine)


@pytest.mark.parametrize("number", [1, 2, 9, 20])
def test_b062_when_the_one_that_works_is_killed_another_begins_anew(
    empty_database_url: str, empty_engine: Engine, number: int
) -> None:
    """It is killed in the command of that number, and what waits for it makes the whole schema."""
    environment = {"DATABASE_URL": empty_database_url}
    with empty_engine.begin() as connection:
        connection.exec_driver_sql(HOLD_UP.format(number=number, gate=GATE))
    with empty_engine.connect() as connection:
        connection.execute(select(func.pg_advisory_xact_lock(GATE)))
        database = connection.execute(text("SELECT oid FROM pg_database WHERE datname = current_database()")).scalar()

        def waiting(count: int) -> bool:
            return connection.execute(text(WAITING), {"database": database}).scalar() == count

        with Child("-c", UPGRADE, env=environment) as killed:
            wait_until(lambda: waiting(1))
            with Child("-c", UPGRADE, env=environment) as other:
                wait_until(lambda: waiting(2))
                killed.kill()
                connection.rollback()
                assert other.wait() == 0, other.output
    migrate.check(empty_engine)


def test_the_lock_is_taken_before_anything_is_made(empty_engine: Engine) -> None:
    with ThreadPoolExecutor(1) as threads:
        with lock_held(empty_engine) as wait_for:
            upgrading = threads.submit(migrate.upgrade, empty_engine)
            wait_for(1)
            assert "hookledger" not in inspect(empty_engine).get_schema_names()
        upgrading.result()
    migrate.check(empty_engine)


def test_ledgers_of_other_schemas_do_not_wait(empty_engine: Engine) -> None:
    with lock_held(empty_engine), empty_engine.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '10s'"))
        migrate.upgrade(connection, schema="hooks")
    migrate.check(empty_engine, "hooks")


def test_threads_of_one_process_migrate_side_by_side(empty_engine: Engine) -> None:
    schemas = [f"hooks_{number}" for number in range(4)]
    with ThreadPoolExecutor(len(schemas)) as threads:
        upgrades = [threads.submit(migrate.upgrade, empty_engine, schema=schema) for schema in schemas * 2]
        for upgrade in upgrades:
            upgrade.result()
    for schema in schemas:
        migrate.check(empty_engine, schema)


def test_a_stricter_isolation_level_of_the_engine_does_no_harm(empty_engine: Engine) -> None:
    strict = empty_engine.execution_options(isolation_level="SERIALIZABLE")
    with ThreadPoolExecutor(2) as threads:
        with lock_held(empty_engine) as wait_for:
            upgrades = [threads.submit(migrate.upgrade, strict) for _ in range(2)]
            wait_for(2)
        for upgrade in upgrades:
            upgrade.result()
    migrate.check(empty_engine)


@pytest.mark.parametrize("server", ["without the function", "that refuses"])
def test_a_server_without_advisory_locks_is_migrated(empty_engine: Engine, server: str) -> None:
    with empty_engine.begin() as connection:
        connection.execute(text(NO_SUCH_FUNCTION))
        if server == "that refuses":
            connection.connection.dbapi_connection.execute(NOT_SUPPORTED)  # type: ignore[union-attr]
    empty_engine.dispose()
    migrate.upgrade(empty_engine)
    migrate.upgrade(empty_engine)
    migrate.check(empty_engine)
    with empty_engine.connect() as connection:
        migrate.downgrade(connection, revision="base")
        assert outside_schema(connection, "hookledger") == []
        assert version_of(connection) is None


def test_any_other_error_of_the_lock_stops_the_upgrade(empty_engine: Engine) -> None:
    with empty_engine.connect() as connection, lock_held(empty_engine):
        connection.execute(text("SET LOCAL lock_timeout = '1ms'"))
        with pytest.raises(Exception, match="lock timeout"):
            migrate.upgrade(connection)
        connection.rollback()
    assert migrate.current(empty_engine) is None


def version_of(connection: Connection) -> str | None:
    return connection.execute(text(f"SELECT version_num FROM hookledger.{VERSION_TABLE}")).scalar()
