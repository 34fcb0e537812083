"""Wrong set-up is told at start: an exit status, one sentence that says what to do, no traceback."""

from __future__ import annotations

import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, make_url, text

from hookledger import migrate
from tests.end_to_end.command import HANDLER, HOOKS, Project, assert_told_in_one_sentence

NOT_CONNECTED = "postgresql://somebody@localhost/never-connected"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose hooks are right, and whose database is never reached."""
    project = Project(tmp_path, NOT_CONNECTED)
    project.write("hooks.py", HOOKS + HANDLER)
    return project


def test_no_such_module(project: Project) -> None:
    assert_told_in_one_sentence(project.run("worker", "nix:inbox"), 2, "no module 'nix'", str(project.folder))


def test_a_file_name_in_place_of_a_module(project: Project) -> None:
    assert_told_in_one_sentence(project.run("worker", "hooks.py"), 2, "hooks:inbox")


def test_no_attribute_named(project: Project) -> None:
    assert_told_in_one_sentence(project.run("worker", "hooks"), 2, "MODULE:INBOX", "hooks:inbox")


def test_no_inbox_of_that_name(project: Project) -> None:
    assert_told_in_one_sentence(project.run("worker", "hooks:outbox"), 2, "'outbox'", "write hooks:inbox")


def test_no_inbox_in_the_module(project: Project) -> None:
    project.write("plain.py", "inbox = 3\n")
    assert_told_in_one_sentence(project.run("worker", "plain:inbox"), 2, "plain:inbox is no Inbox but an int")


def test_no_handlers(project: Project) -> None:
    project.write("bare.py", HOOKS)
    assert_told_in_one_sentence(project.run("worker", "bare:inbox"), 2, "no handlers", "@inbox.snapshot")


def test_a_module_that_raises(project: Project) -> None:
    project.write("broken.py", "import os\n\nraise ValueError('first line\\nsecond line')\n")
    assert_told_in_one_sentence(
        project.run("worker", "broken:inbox"), 2, "ValueError: first line second line (broken.py, line 3)", "--debug"
    )


def test_a_module_that_imports_what_is_not_installed(project: Project) -> None:
    project.write("importing.py", "import not_installed_anywhere\n")
    assert_told_in_one_sentence(project.run("worker", "importing:inbox"), 2, "'not_installed_anywhere'")


def test_a_module_that_is_no_python(project: Project) -> None:
    project.write("wrong.py", "x = 1\ndef f(:\n")
    assert_told_in_one_sentence(project.run("worker", "wrong:inbox"), 2, "SyntaxError", "wrong.py, line 2")


def test_a_module_that_ends_the_process(project: Project) -> None:
    project.write("ending.py", "import sys\n\nsys.exit(0)\n")
    assert_told_in_one_sentence(project.run("worker", "ending:inbox"), 2, "ended the process")


def test_a_module_that_makes_an_engine_without_a_database(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("making.py", "from hookledger.engine import create\n\nengine = create()\n")
    done = project.run("send", "making:inbox", "stripe", "event.json")
    assert_told_in_one_sentence(done, 2, "importing making needs DATABASE_URL (making.py, line 3)", "hookledger dev")


def test_a_secret_that_is_not_set(project: Project) -> None:
    project.write("secretive.py", "import os\n\nsecret = os.environ['STRIPE_WEBHOOK_SECRET']\n")
    assert_told_in_one_sentence(
        project.run("worker", "secretive:inbox"), 2, "the environment variable STRIPE_WEBHOOK_SECRET is not set"
    )


def test_another_missing_key_is_not_taken_for_a_variable(project: Project) -> None:
    project.write("keyed.py", "settings = {}\nsettings['PORT']\n")
    done = project.run("worker", "keyed:inbox")
    assert_told_in_one_sentence(done, 2, "KeyError", "keyed.py, line 2")
    assert "environment variable" not in done.stderr


def test_a_blank_secret(project: Project) -> None:
    project.write("blank.py", HOOKS.replace('"github-test-secret"', '" "') + HANDLER)
    assert_told_in_one_sentence(project.run("worker", "blank:inbox"), 2, "acme-github", "blank")


def test_a_factory_is_called(project: Project) -> None:
    project.write("making.py", HOOKS + "def make():\n    return inbox\n")
    assert_told_in_one_sentence(project.run("worker", "making:make"), 2, "making:make has no handlers")


def test_debug_shows_the_traceback_anywhere_on_the_line(project: Project) -> None:
    project.write("broken.py", "raise ValueError('here')\n")
    for arguments in (("--debug", "worker", "broken:inbox"), ("worker", "broken:inbox", "--debug")):
        done = project.run(*arguments)
        assert done.returncode == 2
        assert "Traceback (most recent call last)" in done.stderr
        assert done.stderr.rstrip().splitlines()[-1].startswith("error: the module broken could not be imported")


WITH_DATABASE = [("worker", "hooks:inbox"), ("status",), ("db", "upgrade")]
WITH_LEDGER = [("worker", "hooks:inbox"), ("status",), ("db", "check")]
RUNNING = [("worker", "hooks:inbox"), ("status",)]
any_with_database = pytest.mark.parametrize("arguments", WITH_DATABASE, ids=" ".join)
any_with_ledger = pytest.mark.parametrize("arguments", WITH_LEDGER, ids=" ".join)
any_running = pytest.mark.parametrize("arguments", RUNNING, ids=" ".join)


@any_with_database
def test_no_database_url(project: Project, arguments: tuple[str, ...]) -> None:
    project.database_url = None
    assert_told_in_one_sentence(project.run(*arguments), 2, "DATABASE_URL", "--database-url", "postgresql://")


@pytest.mark.parametrize(
    ("arguments", "driver"),
    [
        (("worker", "hooks:inbox"), "mysql"),
        (("worker", "hooks:inbox"), "postgresql+asyncpg"),
        (("status",), "mysql"),
        (("db", "upgrade"), "sqlite"),
    ],
)
def test_another_driver(project: Project, arguments: tuple[str, ...], driver: str) -> None:
    project.database_url = f"{driver}://somebody:unsayable@localhost/database"
    done = project.run(*arguments)
    assert_told_in_one_sentence(done, 2, driver, "postgresql://")
    assert "unsayable" not in done.stderr


@pytest.mark.parametrize("arguments", [*WITH_DATABASE, ("dev", "hooks:inbox", "--port", "0")], ids=" ".join)
def test_no_server(project: Project, arguments: tuple[str, ...]) -> None:
    with socket.socket() as bound_but_deaf:
        bound_but_deaf.bind(("127.0.0.1", 0))
        port = bound_but_deaf.getsockname()[1]
        done = project.run(*arguments, "--database-url", f"postgresql://somebody:unsayable@127.0.0.1:{port}/x")
    assert_told_in_one_sentence(done, 1, f"127.0.0.1:{port}", "start the server or correct DATABASE_URL")
    assert "unsayable" not in done.stderr


@any_with_ledger
def test_no_ledger(project: Project, empty_database_url: str, arguments: tuple[str, ...]) -> None:
    project.database_url = empty_database_url
    assert_told_in_one_sentence(project.run(*arguments), 1, "'hookledger'", "run `hookledger db upgrade`")


@any_with_ledger
def test_a_newer_ledger(project: Project, database_url: str, engine: Engine, arguments: tuple[str, ...]) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE hookledger.schema_version SET version_num = 'hookledger_9999'"))
    project.database_url = database_url
    assert_told_in_one_sentence(project.run(*arguments), 1, "hookledger_9999", "newer", "install the version")


@any_with_ledger
def test_an_older_ledger(project: Project, database_url: str, arguments: tuple[str, ...]) -> None:
    # The ledger is at the newest revision there is; a command that knows a later one stands for the next release.
    later = (
        "from hookledger import migrate; migrate.head = lambda: 'hookledger_9999'; "
        "from hookledger.ledger import ready; ready.NEWEST = 'hookledger_9999'; "
        "from hookledger.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", later, *arguments],
        capture_output=True,
        text=True,
        cwd=project.folder,
        env=project.environment({"DATABASE_URL": database_url}),
        timeout=120,
    )
    assert_told_in_one_sentence(done, 1, migrate.head(), "hookledger_9999", "run `hookledger db upgrade`")


@pytest.fixture
def other_role(engine: Engine) -> Iterator[str]:
    """A role that may log in and no more."""
    role = f"hookledger_test_{secrets.token_hex(4)}"
    with engine.begin() as connection:
        connection.execute(text(f"CREATE ROLE {role} LOGIN PASSWORD 'unsayable'"))
    yield role
    with engine.begin() as connection:
        connection.execute(text(f"DROP OWNED BY {role}"))
        connection.execute(text(f"DROP ROLE {role}"))


def url_as(database_url: str, role: str) -> str:
    return make_url(database_url).set(username=role, password="unsayable").render_as_string(hide_password=False)


@any_running
def test_a_role_without_rights(
    project: Project, database_url: str, other_role: str, arguments: tuple[str, ...]
) -> None:
    project.database_url = url_as(database_url, other_role)
    done = project.run(*arguments)
    assert_told_in_one_sentence(done, 2, other_role, "USAGE on the schema")
    assert "unsayable" not in done.stderr


def test_the_printed_grants_are_what_the_role_lacks(
    project: Project, database_url: str, engine: Engine, other_role: str
) -> None:
    grants = project.run("db", "grants", other_role)
    assert grants.returncode == 0, grants.stderr
    with engine.begin() as connection:
        for statement in grants.stdout.split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    project.database_url = url_as(database_url, other_role)
    assert project.run("status").returncode == 0


def test_a_role_that_may_not_upgrade(project: Project, empty_database_url: str) -> None:
    engine = create_engine(empty_database_url)
    role = f"hookledger_test_{secrets.token_hex(4)}"
    try:
        with engine.begin() as connection:
            connection.execute(text(f"CREATE ROLE {role} LOGIN PASSWORD 'unsayable'"))
        project.database_url = url_as(empty_database_url, role)
        assert_told_in_one_sentence(project.run("db", "upgrade"), 2, role, "CREATE SCHEMA")
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"DROP ROLE {role}"))
        engine.dispose()
