"""`hookledger db`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from hookledger import migrate
from tests.end_to_end.command import Project, assert_told_in_one_sentence


@pytest.fixture
def project(tmp_path: Path, empty_database_url: str) -> Project:
    """A folder, and a database without a ledger."""
    return Project(tmp_path, empty_database_url)


def test_from_nothing_to_a_ledger(project: Project) -> None:
    assert project.run("db", "current").stdout == f"none (newest: {migrate.head()})\n"
    upgraded = project.run("db", "upgrade")
    assert (upgraded.returncode, upgraded.stdout) == (0, "")
    assert f"from nothing to {migrate.head()}" in upgraded.stderr
    assert project.run("db", "current").stdout == f"{migrate.head()} (newest)\n"
    assert json.loads(project.run("db", "current", "--json").stdout) == {
        "schema": "hookledger",
        "current": migrate.head(),
        "head": migrate.head(),
    }
    assert project.run("db", "check").returncode == 0
    again = project.run("db", "upgrade")
    assert again.returncode == 0
    assert "nothing to do" in again.stderr


def test_check_tells_what_was_changed_by_hand(project: Project) -> None:
    project.run("db", "upgrade")
    assert project.database_url is not None
    engine = create_engine(project.database_url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE hookledger.pending ADD COLUMN colour text"))
    engine.dispose()
    assert_told_in_one_sentence(project.run("db", "check"), 1, "colour")


def test_another_schema_by_option_or_by_environment(project: Project) -> None:
    assert project.run("db", "upgrade", "--schema", "second").returncode == 0
    assert project.run("db", "check", env={"HOOKLEDGER_SCHEMA": "second"}).returncode == 0
    assert_told_in_one_sentence(project.run("db", "check"), 1, "'hookledger'")


def test_the_url_may_be_given_with_the_command(project: Project) -> None:
    url = project.database_url
    assert url is not None
    project.database_url = None
    assert project.run("db", "upgrade", "--database-url", url).returncode == 0


def test_an_unknown_revision(project: Project) -> None:
    assert_told_in_one_sentence(project.run("db", "upgrade", "hookledger_4711"), 1, "hookledger_4711")


def test_the_printed_sql_makes_the_ledger(project: Project) -> None:
    printed = project.run("db", "sql", env={"DATABASE_URL": ""})
    assert printed.returncode == 0, printed.stderr
    assert project.database_url is not None
    engine = create_engine(project.database_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.connection.cursor().execute(printed.stdout)
    engine.dispose()
    assert project.run("db", "check").returncode == 0


def test_init_writes_what_alembic_takes_and_overwrites_nothing(project: Project) -> None:
    assert project.run("db", "init").returncode == 0
    written = project.folder / "alembic.hookledger.ini"
    assert "postgresql" not in written.read_text()
    subprocess.run(
        [sys.executable, "-m", "alembic", "-c", written, "upgrade", "head"],
        check=True,
        capture_output=True,
        cwd=project.folder,
        env=project.environment(),
        timeout=120,
    )
    assert project.run("db", "check").returncode == 0
    written.write_text("mine")
    assert_told_in_one_sentence(project.run("db", "init"), 2, "alembic.hookledger.ini", "--force")
    assert written.read_text() == "mine"
    assert project.run("db", "init", "--force").returncode == 0
    assert "script_location" in written.read_text()


def test_init_where_nothing_can_be_written(project: Project) -> None:
    assert_told_in_one_sentence(project.run("db", "init", "no/such/folder/file.ini"), 2, "no/such/folder/file.ini")
