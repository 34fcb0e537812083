"""`hookledger doctor`: how it ends, what it prints, and that it shows no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.databases import query
from tests.end_to_end.command import HANDLER, HOOKS, SECRET, Project, assert_told_in_one_sentence


@pytest.fixture
def project(tmp_path: Path, database_url: str) -> Project:
    """A project in order."""
    project = Project(tmp_path, database_url)
    project.write("hooks.py", HOOKS + HANDLER)
    return project


def test_a_project_in_order(project: Project) -> None:
    done = project.run("doctor", "hooks:inbox")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "note: handlers: no handler takes what comes from acme-github, billing" in done.stdout
    assert SECRET not in done.stdout
    document = json.loads(project.run("doctor", "--json").stdout)
    assert document["healthy"] is True
    assert {finding["severity"] for finding in document["findings"]} == {"note"}
    assert set(document["findings"][0]) == {"severity", "check", "what", "do"}


def test_what_is_wrong_comes_with_what_to_do(project: Project, database_url: str) -> None:
    query(database_url, "UPDATE hookledger.schema_version SET version_num = 'hookledger_0001'")
    done = project.run("doctor", "hooks:inbox")
    assert done.returncode == 6
    assert done.stdout.startswith("error: schema: the ledger is at hookledger_0001")
    assert "\n    do: run `hookledger db upgrade`\n" in done.stdout
    assert done.stderr.startswith("unhealthy: 1 error, ")


def test_a_blank_secret_hides_nothing_else(project: Project, database_url: str) -> None:
    project.write("hooks.py", HOOKS.replace(SECRET, " "))
    query(database_url, "UPDATE hookledger.schema_version SET version_num = 'hookledger_0001'")
    document = json.loads(project.run("doctor", "hooks:inbox", "--json").stdout)
    assert [finding["check"] for finding in document["findings"] if finding["severity"] == "error"] == [
        "secrets",
        "schema",
    ]


def test_a_database_that_does_not_answer(project: Project) -> None:
    done = project.run("doctor", "--database-url", "postgresql://app:hidden-one@127.0.0.1:1/ledger")
    assert done.returncode == 6
    assert done.stdout.startswith("error: database: cannot reach database 'ledger' at 127.0.0.1:1")
    assert "hidden-one" not in done.stdout + done.stderr


def test_wrong_use(project: Project, tmp_path: Path) -> None:
    assert_told_in_one_sentence(project.run("doctor", "nowhere:inbox"), 2, "there is no module 'nowhere'")
    assert_told_in_one_sentence(Project(tmp_path).run("doctor"), 2, "DATABASE_URL")
