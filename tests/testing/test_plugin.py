"""The plugin as it is found by pytest, in projects of users: light, and as docs/testing.md says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.test_readme import blocks, files

LIGHT = """
import sys

HEAVY = ("sqlalchemy", "psycopg", "alembic", "hypothesis", "hookledger.inbox", "hookledger.errors", "uvicorn")


def test_nothing_else_is_loaded(pytestconfig):
    assert pytestconfig.pluginmanager.hasplugin("hookledger")
    assert pytestconfig.getini("hookledger_schema") == "ledger"
    assert [name for name in HEAVY if name in sys.modules] == []
"""

WITHOUT_HYPOTHESIS = """
import importlib.util
import sys

import pytest
from hookledger import Inbox, SetupError, stripe

found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "hypothesis" else found(name, *more)


def test_the_rest_works(hookledger_database, hookledger_schema, inbox_client, run_worker_until_idle, assert_converges):
    assert hookledger_database.schema == hookledger_schema == "ledger"
    inbox = Inbox(stripe(secrets="whsec_test"), schema="ledger")
    inbox.accumulate("stripe", name="nothing")(lambda delivery, tx: None)
    assert inbox_client(inbox).post("stripe", {"id": "evt_1", "type": "t"}).status == 200
    assert run_worker_until_idle(inbox).outcomes == {"applied": 1}
    with pytest.raises(SetupError, match="pip install 'hookledger.testing.'"):
        assert_converges(inbox, [("stripe", {"id": "evt_1", "type": "t"})], "SELECT 1")
"""

INI = "[pytest]\nhookledger_schema = ledger\naddopts = -p no:cacheprovider -W error\n"


def run_pytest(folder: Path, server_url: str, *arguments: str) -> tuple[int, str]:
    """Run pytest in a project, as a user does; its status, and what it printed."""
    # Whatever copy of hookledger these tests import is the one that the project has.
    path = os.pathsep.join([str(folder), *[each for each in sys.path if each]])
    environment = {**os.environ, "DATABASE_URL": server_url, "PYTHONPATH": path}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def write(folder: Path, **contents: str) -> None:
    (folder / "pytest.ini").write_text(INI)
    for name, content in contents.items():
        (folder / f"{name}.py").write_text(content)


def test_loading_the_plugin_loads_little(tmp_path: Path, hookledger_server_url: str) -> None:
    write(tmp_path, test_light=LIGHT)
    # Other plugins may well load more.
    arguments = [f"-pno:{name}" for name in ("hypothesispytest", "xdist", "xdist.looponfail", "anyio")]
    status, printed = run_pytest(tmp_path, hookledger_server_url, *arguments)
    assert status == 0, printed


def test_only_the_search_needs_hypothesis(tmp_path: Path, hookledger_server_url: str) -> None:
    write(tmp_path, test_without=WITHOUT_HYPOTHESIS)
    status, printed = run_pytest(tmp_path, hookledger_server_url, "-pno:hypothesispytest")
    assert status == 0, printed


RIGHT = """
from hookledger import Delivery, Inbox, stripe
from sqlalchemy import Connection, text
from test_hooks import charge

inbox = Inbox(stripe(secrets="whsec_test"))

{handler}

def test_what_is_right_converges(assert_converges):
    deliveries = [("stripe", charge(number, 10**number)) for number in range(3)]
    assert_converges(inbox, deliveries, "SELECT cents FROM revenue", examples=20)
"""


@pytest.fixture
def project(tmp_path: Path, project_root: Path) -> Path:
    """The project of docs/testing.md, with all tests and handlers that it shows."""
    page = project_root / "docs" / "testing.md"
    for name, block in files(page):
        if name.endswith(".py"):
            (tmp_path / name).write_text(block)
    unnamed = [block for block in blocks(page, "python") if not block.startswith("# ")]
    (handler,) = [block for block in unnamed if block.startswith("@inbox.accumulate")]
    more = [block for block in unnamed if block.startswith("def test_")]
    (tmp_path / "test_more.py").write_text("\n\n".join(["from hooks import inbox", *more]))
    (tmp_path / "test_right.py").write_text(RIGHT.format(handler=handler))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider -W error\n")
    return tmp_path


def test_the_mistake_of_the_page_is_found_as_shown(
    project: Path, project_root: Path, hookledger_server_url: str
) -> None:
    # In two processes, so that it is seen that they do not meet.
    status, printed = run_pytest(project, hookledger_server_url, "-n2")
    assert status == 1
    assert "FAILED test_hooks.py::test_revenue_converges" in printed
    assert "1 failed, 4 passed" in printed
    told = [line.removeprefix("E").strip() for line in printed.splitlines()]
    (shown,) = blocks(project_root / "docs" / "testing.md", "text")
    for line in shown.splitlines():
        if "that were tried" not in line:
            assert line.strip() in told, printed
