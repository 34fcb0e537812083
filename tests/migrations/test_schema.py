"""The schema that the migrations make: the golden one, under any name, there and back (D13)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine, make_url, text

from hookledger import migrate
from hookledger.errors import SchemaError, SetupError
from hookledger.ledger.schema import VERSION_TABLE, tables
from tests.migrations.golden import describe_schema, outside_schema
from tests.processes import Child

GOLDEN = Path(__file__).parent / "golden_schema.sql"
NAMES = ["hookledger", "My-Hooks", "100%", 'a "quoted" name', "with:colon", "müller", "select"]


def assert_golden(engine: Engine, schema: str, tmp_path: Path) -> None:
    with engine.connect() as connection:
        found = describe_schema(connection, schema)
    (tmp_path / "found.sql").write_text(found)
    assert found == GOLDEN.read_text(), f"if that is what you want: cp {tmp_path / 'found.sql'} {GOLDEN}"


@pytest.mark.parametrize("schema", NAMES)
def test_b060_upgrade_makes_the_golden_schema_under_any_name(empty_engine: Engine, schema: str, tmp_path: Path) -> None:
    migrate.upgrade(empty_engine, schema=schema)
    assert_golden(empty_engine, schema, tmp_path)
    assert migrate.current(empty_engine, schema) == migrate.head()
    with empty_engine.connect() as connection:
        assert outside_schema(connection, schema) == []


@pytest.mark.parametrize("schema", NAMES)
def test_downgrade_leaves_an_empty_schema_and_up_again_is_golden(
    empty_engine: Engine, schema: str, tmp_path: Path
) -> None:
    migrate.upgrade(empty_engine, schema=schema)
    migrate.downgrade(empty_engine, schema=schema, revision="base")
    assert migrate.current(empty_engine, schema) is None
    with empty_engine.connect() as connection:
        assert describe_schema(connection, schema).count("CREATE TABLE") == 1  # the version table
    migrate.upgrade(empty_engine, schema=schema)
    assert_golden(empty_engine, schema, tmp_path)


def test_the_tables_of_the_code_are_those_of_the_migrations(empty_engine: Engine) -> None:
    migrate.upgrade(empty_engine)
    migrate.check(empty_engine)
    with empty_engine.connect() as connection:
        made = connection.execute(
            text("SELECT tablename FROM pg_tables WHERE schemaname = 'hookledger' AND tablename <> 'payloads_default'")
        ).scalars()
        assert {*made} == {VERSION_TABLE, *(table.name for table in tables("hookledger").metadata.sorted_tables)}


@pytest.mark.parametrize("schema", NAMES)
@pytest.mark.parametrize("search_path", ["", "the ledger"])
def test_any_search_path_will_do(
    empty_database_url: str,
    make_engine: Callable[[str | URL], Engine],
    schema: str,
    search_path: str,
    tmp_path: Path,
) -> None:
    path = '"' + schema.replace('"', '""') + '"' if search_path else '""'
    url = make_url(empty_database_url).update_query_dict({"options": f"-csearch_path={path}".replace(" ", "\\ ")})
    migrate.upgrade(make_engine(url), schema=schema)
    # An engine reads its default schema at its first connection; only now is it the ledger's.
    engine = make_engine(url)
    migrate.check(engine, schema)
    assert_golden(engine, schema, tmp_path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DROP TABLE hookledger.failures", "add table failures"),
        ("DROP INDEX hookledger.pending_due_at_delivery_id_idx", "add index pending_due_at_delivery_id_idx"),
        ("ALTER TABLE hookledger.effects ALTER outcome DROP NOT NULL", "modify nullable hookledger.effects.outcome"),
        ("ALTER TABLE hookledger.pending ALTER attempts TYPE bigint", "modify type hookledger.pending.attempts"),
        ("ALTER TABLE hookledger.pending ALTER attempts SET DEFAULT 1", "modify default hookledger.pending.attempts"),
        ("ALTER TABLE hookledger.pending ADD mine text", "remove column hookledger.pending.mine"),
    ],
)
def test_check_names_what_was_changed_by_hand(empty_engine: Engine, change: str, told: str) -> None:
    migrate.upgrade(empty_engine)
    with empty_engine.begin() as connection:
        connection.execute(text(change))
    with pytest.raises(SchemaError, match=told):
        migrate.check(empty_engine)


def test_check_asks_for_an_upgrade_first(empty_engine: Engine) -> None:
    with pytest.raises(SchemaError, match="hookledger db upgrade"):
        migrate.check(empty_engine)


def test_partitions_and_tables_beside_the_ledger_are_no_difference(empty_engine: Engine) -> None:
    migrate.upgrade(empty_engine, schema="public")
    with empty_engine.begin() as connection:
        connection.execute(text("CREATE TABLE public.customers (id integer)"))
        connection.execute(
            text(
                "CREATE TABLE public.payloads_2031 PARTITION OF public.payloads"
                " FOR VALUES FROM ('2031-01-01+00') TO ('2032-01-01+00')"
            )
        )
    migrate.check(empty_engine, "public")


@pytest.mark.parametrize("schema", NAMES)
def test_the_written_statements_do_the_same(empty_engine: Engine, schema: str, tmp_path: Path) -> None:
    statements = migrate.sql(schema)
    assert statements.startswith("BEGIN;")
    with empty_engine.connect() as connection:
        # Without parameters the driver sends the text as it is, as psql would.
        connection.connection.dbapi_connection.execute(statements)  # type: ignore[union-attr]
    assert_golden(empty_engine, schema, tmp_path)
    migrate.upgrade(empty_engine, schema=schema)
    migrate.check(empty_engine, schema)


def test_alembic_writes_the_same_statements_without_a_database(tmp_path: Path) -> None:
    ini = tmp_path / "hookledger.ini"
    ini.write_text(migrate.ini("100% hooks"))
    with Child("-m", "alembic", "-c", ini, "upgrade", "head", "--sql", env={"DATABASE_URL": ""}) as alembic:
        assert alembic.wait() == 0, alembic.output
        assert alembic.output == migrate.sql("100% hooks")


@pytest.mark.parametrize(
    ("way", "schema"), [("ini", "My-Hooks"), ("environment", "from the environment"), ("pyproject", "hookledger")]
)
def test_alembic_on_the_command_line(
    empty_database_url: str, empty_engine: Engine, project_root: Path, tmp_path: Path, way: str, schema: str
) -> None:
    ini = tmp_path / "hookledger.ini"
    ini.write_text(migrate.ini(schema if way == "ini" else "another"))
    environment = {"DATABASE_URL": empty_database_url, "HOOKLEDGER_SCHEMA": schema if way == "environment" else ""}
    command = ["-m", "alembic", *([] if way == "pyproject" else ["-c", str(ini)])]
    for arguments, told in (
        (["upgrade", "head"], ""),
        (["check"], "No new upgrade operations"),
        (["current"], migrate.head()),
    ):
        with Child(*command, *arguments, env=environment, cwd=project_root) as alembic:
            assert alembic.wait() == 0, alembic.output
            assert told in alembic.output
    assert_golden(empty_engine, schema, tmp_path)


def test_alembic_tells_wrong_set_up_in_one_line(tmp_path: Path) -> None:
    ini = tmp_path / "hookledger.ini"
    ini.write_text(migrate.ini())
    with Child("-m", "alembic", "-c", ini, "upgrade", "head", env={"DATABASE_URL": ""}) as alembic:
        assert alembic.wait() != 0
        assert "set DATABASE_URL" in alembic.output
        assert "Traceback" not in alembic.output


def test_alembic_check_and_current_change_nothing(
    empty_database_url: str, empty_engine: Engine, tmp_path: Path
) -> None:
    ini = tmp_path / "hookledger.ini"
    ini.write_text(migrate.ini())
    for command, code in (("current", 0), ("check", 255)):
        with Child("-m", "alembic", "-c", ini, command, env={"DATABASE_URL": empty_database_url}) as alembic:
            assert alembic.wait() == code, alembic.output
            assert "Traceback" not in alembic.output
    with empty_engine.connect() as connection:
        assert outside_schema(connection, "") == []


def test_the_ledger_has_one_newest_revision_with_a_short_name() -> None:
    assert migrate.revisions()[0] == "hookledger_0001"
    assert migrate.revisions()[-1] == migrate.head()
    assert all(len(revision) <= 32 for revision in migrate.revisions())


@pytest.mark.parametrize("schema", ["", "pg_hooks", "x" * 64, "ü" * 32, "nul\x00"])
def test_a_schema_name_that_the_server_would_not_take_is_refused(empty_engine: Engine, schema: str) -> None:
    with pytest.raises(SetupError, match="not one that PostgreSQL takes"):
        migrate.upgrade(empty_engine, schema=schema)
    with pytest.raises(SetupError, match="not one that PostgreSQL takes"):
        migrate.sql(schema)


def test_an_unknown_revision_is_refused(empty_engine: Engine) -> None:
    with pytest.raises(SchemaError, match="hookledger_8888"):
        migrate.upgrade(empty_engine, revision="hookledger_8888")
    with pytest.raises(SchemaError, match="hookledger_8888"):
        migrate.sql(revision="hookledger_8888")
    with empty_engine.connect() as connection:
        assert outside_schema(connection, "") == []
