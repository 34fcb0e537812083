"""The ledger beside a user's own tables and Alembic history, in one database (D13)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect, text

from hookledger import engine as engines
from hookledger import migrate
from hookledger.errors import SetupError
from hookledger.ledger.schema import VERSION_TABLE
from tests.migrations.user_project import UserProject

UPGRADE_INSIDE = """
    op.create_table("before", sa.Column("id", sa.BigInteger))
    hookledger.migrate.upgrade(op.get_bind())
    hookledger.migrate.check(op.get_bind())
    context.config.get_main_option("script_location")
    op.create_table("after", sa.Column("id", sa.BigInteger))
"""
ONE_MORE = """
    op.add_column("after", sa.Column("name", sa.Text))
"""


@pytest.fixture
def project(tmp_path: Path, empty_database_url: str) -> UserProject:
    return UserProject(tmp_path / "project", empty_database_url)


def versions(engine: Engine, name: str) -> list[str]:
    with engine.connect() as connection:
        return [*connection.execute(text(f"SELECT version_num FROM {name}")).scalars()]


def tables_of(engine: Engine, schema: str) -> set[str]:
    return {*inspect(engine).get_table_names(schema=schema)}


def test_b058_the_two_histories_do_not_see_each_other(project: UserProject, empty_engine: Engine) -> None:
    project.alembic("upgrade", "head")
    for _ in range(2):
        migrate.upgrade(empty_engine)
        project.alembic("upgrade", "head")
        assert versions(empty_engine, "public.alembic_version") == ["abc123"]
        assert versions(empty_engine, f"hookledger.{VERSION_TABLE}") == [migrate.head()]
    migrate.downgrade(empty_engine, revision="base")
    assert versions(empty_engine, "public.alembic_version") == ["abc123"]
    assert tables_of(empty_engine, "public") == {"alembic_version", "customers", "deliveries"}


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        ("hookledger", ""),
        ("hookledger", "include_schemas=True, include_name=hookledger.migrate.include_name"),
        ("hooks", "include_schemas=True, include_name=hookledger.migrate.leave_out('hooks')"),
    ],
)
def test_b059_autogenerate_proposes_only_what_is_the_users(
    project: UserProject, empty_engine: Engine, schema: str, options: str
) -> None:
    project.alembic("upgrade", "head")
    migrate.upgrade(empty_engine, schema=schema)
    project.set_models(options=options, keep_deliveries=False)
    proposed = project.autogenerate()
    # The user's own table has the name of one of ours, and is proposed all the same.
    assert "op.drop_table('deliveries')" in proposed
    assert proposed.count("op.drop_") == 1


def test_autogenerate_with_all_schemas_needs_the_filter(project: UserProject, empty_engine: Engine) -> None:
    project.alembic("upgrade", "head")
    migrate.upgrade(empty_engine)
    project.set_models(options="include_schemas=True")
    assert "op.drop_table('effects', schema='hookledger')" in project.autogenerate()


def test_b059_autogenerate_with_the_ledger_among_the_users_tables(tmp_path: Path, empty_engine: Engine) -> None:
    project = UserProject(tmp_path / "project", empty_engine.url.render_as_string(hide_password=False))
    project.add_revision("abc123", None, '    op.create_table("invoices", sa.Column("id", sa.BigInteger))\n')
    project.alembic("upgrade", "head")
    migrate.upgrade(empty_engine, schema="public")
    project.set_models(options="include_name=hookledger.migrate.leave_out('public')", keep_deliveries=False)
    proposed = project.autogenerate()
    assert "op.drop_table('invoices')" in proposed
    # `drop_` occurs once more: the new table `customers` is dropped by the proposed downgrade.
    assert proposed.count("op.drop_") == 2


def test_upgrade_inside_the_users_own_revision(project: UserProject, empty_engine: Engine) -> None:
    project.add_revision("inside", "abc123", UPGRADE_INSIDE)
    project.add_revision("later", "inside", ONE_MORE)
    project.alembic("upgrade", "head")
    assert versions(empty_engine, "public.alembic_version") == ["later"]
    assert {"before", "after"} <= tables_of(empty_engine, "public")
    migrate.check(empty_engine)


def test_a_user_revision_that_fails_takes_the_ledger_back_with_it(project: UserProject, empty_engine: Engine) -> None:
    project.add_revision("inside", "abc123", UPGRADE_INSIDE + '    raise RuntimeError("no")\n')
    project.alembic("upgrade", "head", code=1)
    assert migrate.current(empty_engine) is None
    assert tables_of(empty_engine, "public") == set()


def test_a_connection_is_neither_committed_nor_closed(empty_engine: Engine) -> None:
    with empty_engine.connect() as connection:
        migrate.upgrade(connection)
        assert migrate.current(connection) == migrate.head()
        assert migrate.current(empty_engine) is None
        connection.rollback()
        assert migrate.current(connection) is None
        migrate.upgrade(connection)
        connection.commit()
    assert migrate.current(empty_engine) == migrate.head()


def test_an_asynchronous_connection_is_migrated_through_run_sync(empty_database_url: str, empty_engine: Engine) -> None:
    async def upgrade() -> None:
        engine = engines.create(empty_database_url, asynchronous=True)
        async with engine.begin() as connection:
            await connection.run_sync(migrate.upgrade)
        await engine.dispose()

    asyncio.run(upgrade())
    migrate.check(empty_engine)


def test_a_connection_in_autocommit_mode_is_refused(empty_engine: Engine) -> None:
    with (
        empty_engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        pytest.raises(SetupError, match="one transaction"),
    ):
        migrate.upgrade(connection)
    assert migrate.current(empty_engine) is None
