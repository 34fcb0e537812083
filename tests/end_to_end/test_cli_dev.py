"""`hookledger dev`: everything in one terminal, and nothing left behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.command import BODY, HANDLER, HOOKS, Project, assert_told_in_one_sentence
from tests.processes import Child, wait_until


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with an event, and no database."""
    project = Project(tmp_path)
    project.write("hooks.py", HOOKS + HANDLER)
    project.write("event.json", BODY)
    return project


class Running:
    """A running `hookledger dev`."""

    def __init__(self, child: Child) -> None:
        self.child = child
        child.wait_for_output("ready;")
        receiver = child.wait_for_output("receiver ")
        self.url = receiver.split()[-1].rpartition("/")[0]

    def wait_for_line(self, *words: str) -> str:
        """A line that has the words in this order, apart from white space."""

        def found() -> str | None:
            complete = self.child.output.rpartition("\n")[0]
            return next((line for line in complete.split("\n") if all(word in line.split() for word in words)), None)

        return wait_until(found) or ""

    def interrupt(self) -> int:
        """Ctrl-C, which a terminal sends to the whole process group; and the exit status."""
        everyone = psutil.Process(self.child.pid).children(recursive=True)
        os.killpg(self.child.pid, signal.SIGINT)
        status = self.child.wait()
        _, alive = psutil.wait_procs(everyone, timeout=20)
        assert alive == []
        return status


@contextmanager
def dev(project: Project, *arguments: str) -> Iterator[Running]:
    with project.start("dev", "hooks:inbox", "--port", "0", *arguments) as child:
        yield Running(child)


def test_a_delivery_goes_through_and_ctrl_c_leaves_nothing_but_the_data(project: Project) -> None:
    with dev(project) as running:
        send = ("send", "hooks:inbox", "stripe", "event.json", "--url", running.url)
        assert project.run(*send).returncode == 0
        running.wait_for_line("received", "stripe", "evt_1", "charge.succeeded")
        assert "by add_revenue" in running.wait_for_line("applied", "stripe", "evt_1")
        assert project.run(*send).returncode == 0
        running.wait_for_line("repeated", "stripe", "evt_1")
        forged = project.run(*send, "--header", "Stripe-Signature: t=1,v1=00")
        assert forged.stdout.startswith("401 ")
        running.wait_for_line("refused", "stripe", "401")
        running.wait_for_line("send", "one", "event.json", running.url)
        assert running.interrupt() == 0
        assert "Traceback" not in running.child.output
    assert {path.name for path in project.folder.iterdir()} - {"__pycache__"} == {
        "hooks.py",
        "event.json",
        ".hookledger",
    }
    assert (project.folder / ".hookledger/.gitignore").read_text() == "*\n"
    with dev(project) as running:
        url = running.child.wait_for_output("database ").split()[-1]
        assert f"export DATABASE_URL={shlex.quote(url)}\n" in running.child.output
        status = json.loads(project.run("status", "--json", "--database-url", url).stdout)
        assert status["settled"]["by_outcome"] == {"applied": 1}
        assert status["redeliveries"]["count"] == 1
        assert running.interrupt() == 0


def test_events_as_json_and_a_module_that_reads_database_url(project: Project) -> None:
    project.write("hooks.py", HOOKS + HANDLER + "\nimport os\nprint(os.environ['DATABASE_URL'].upper())\n")
    with dev(project, "--json") as running:
        running.child.wait_for_output("POSTGRESQL://")
        assert project.run("send", "hooks:inbox", "stripe", "event.json", "--url", running.url,
                           env={"DATABASE_URL": "x"}).returncode == 0  # fmt: skip
        applied = json.loads(running.child.wait_for_output('"applied"'))
        assert applied["event_id"] == "evt_1"
        assert applied["handler"] == "add_revenue"
        assert running.interrupt() == 0


def test_a_handler_that_fails_is_shown_once_and_cannot_draw_on_the_terminal(project: Project) -> None:
    failing = HANDLER.replace('tx.execute(text("SELECT 1"))', 'raise ValueError("no\\x1b[2J way")')
    project.write("hooks.py", HOOKS + failing)
    with dev(project) as running:
        assert project.run("send", "hooks:inbox", "stripe", "event.json", "--url", running.url).returncode == 0
        running.wait_for_line("failed", "stripe", "evt_1")
        assert running.interrupt() == 0
        assert "\x1b" not in running.child.output
        assert running.child.output.count("ValueError: no") == 1


def test_with_a_database_of_ones_own(project: Project, empty_database_url: str) -> None:
    with dev(project, "--database-url", empty_database_url) as running:
        assert project.run("send", "hooks:inbox", "stripe", "event.json", "--url", running.url).returncode == 0
        running.wait_for_line("applied", "stripe", "evt_1")
        assert running.interrupt() == 0
    assert not (project.folder / ".hookledger").exists()
    status = project.run("status", "--json", "--database-url", empty_database_url)
    assert json.loads(status.stdout)["settled"]["by_outcome"] == {"applied": 1}


def test_database_url_in_the_environment_is_not_migrated(project: Project, empty_database_url: str) -> None:
    """It may well be that of production."""
    project.database_url = empty_database_url
    with dev(project) as running:
        assert running.interrupt() == 0
    assert project.run("db", "current").stdout.startswith("none ")


def test_an_address_below_another_path_is_told(project: Project) -> None:
    with dev(project) as running:
        url = running.url.removesuffix("/webhooks")
        done = project.run("send", "hooks:inbox", "stripe", "event.json", "--url", url)
        assert done.stdout.startswith("404 Not Found\nPOST to /webhooks/SOURCE")
        assert running.interrupt() == 0


def test_a_port_in_use(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = project.run("dev", "hooks:inbox", "--port", str(port))
    assert_told_in_one_sentence(done, 1, f"port {port}", "--port")
    assert not (project.folder / ".hookledger").exists()


def test_no_such_module_starts_nothing(project: Project) -> None:
    assert_told_in_one_sentence(project.run("dev", "nix:inbox"), 2, "no module 'nix'")
    assert not (project.folder / ".hookledger").exists()


def test_a_module_without_handlers_ends_the_server_again(project: Project) -> None:
    project.write("bare.py", HOOKS)
    assert_told_in_one_sentence(project.run("dev", "bare:inbox", "--port", "0"), 2, "no handlers")
    assert not [
        process for process in psutil.process_iter(["cmdline"])
        if str(project.folder) in " ".join(process.info["cmdline"] or [])
    ]  # fmt: skip


def test_uvicorn_is_missing(project: Project) -> None:
    without = "import sys; sys.modules['uvicorn'] = None; from hookledger.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", without, "dev", "hooks:inbox"],
        capture_output=True,
        text=True,
        cwd=project.folder,
        env=project.environment(),
        timeout=60,
    )
    assert_told_in_one_sentence(done, 2, 'pip install "hookledger[demo]"')
