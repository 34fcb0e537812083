"""`hookledger demo`, as a user runs it: it shows the main job done, it would find a fault, and it leaves nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy import Connection, text

from hookledger.cli.app import run as run_command
from hookledger.demo import run as demo
from hookledger.demo.check import Verdict, check
from hookledger.demo.evidence import Evidence, gather
from hookledger.demo.framework import Framework
from hookledger.demo.traffic import make_traffic
from tests.end_to_end.command import COMMAND, assert_told_in_one_sentence, clean_environment
from tests.processes import Child, wait_until

DELIVERIES = 600
COPIES = DELIVERIES // 5
MANY = "20000"
"""More than are sent before a test interrupts it."""
KEYS = [
    "sent",
    "accepted",
    "unique",
    "applied",
    "stale",
    "superseded",
    "resent",
    "lost",
    "doubled",
    "misordered",
    "workers_killed",
    "seconds",
]

SMALLEST_CHARGE = "(SELECT min(event_id) FROM demo.revenue)"
SOME_APPLIED = """
    (SELECT min(event_id) FROM hookledger.effects JOIN hookledger.deliveries USING (source, event_id)
     WHERE outcome = 'applied' AND event_type LIKE 'customer.%')
"""
SOME_CUSTOMER = "(SELECT min(resource) FROM hookledger.resource_state WHERE handler = 'save_customer' AND NOT deleted)"
TAMPERING = {
    # What is done to the database, and how much is then lost, doubled, misordered.
    "nothing": ([], (0, 0, 0)),
    "an outcome removed": ([f"DELETE FROM hookledger.effects WHERE event_id = {SOME_APPLIED}"], (1, 0, 0)),
    "two outcomes removed": (
        [
            "DELETE FROM hookledger.effects WHERE event_id IN "
            "(SELECT event_id FROM hookledger.effects ORDER BY event_id LIMIT 2)"
        ],
        (2, 0, 0),
    ),
    "a row of a handler removed": ([f"DELETE FROM demo.revenue WHERE event_id = {SMALLEST_CHARGE}"], (1, 0, 0)),
    "a change removed": ([f"DELETE FROM demo.changes WHERE event_id = {SOME_APPLIED}"], (1, 0, 0)),
    "a charge added twice": (
        [f"INSERT INTO demo.revenue SELECT * FROM demo.revenue WHERE event_id = {SMALLEST_CHARGE}"],
        (0, 1, 0),
    ),
    "commits added twice": (
        [
            "INSERT INTO demo.commits SELECT * FROM demo.commits "
            "WHERE event_id = (SELECT min(event_id) FROM demo.commits)"
        ],
        (0, 1, 0),
    ),
    "a snapshot applied twice": (
        [f"INSERT INTO demo.changes SELECT * FROM demo.changes WHERE event_id = {SOME_APPLIED}"],
        (0, 1, 0),
    ),
    "a total raised": (
        [
            "UPDATE hookledger.resource_state SET state = jsonb_set(state, '{sum}', to_jsonb((state->>'sum')::int + 1))"
            " WHERE (handler, resource) = (SELECT 'add_revenue', min(customer) FROM demo.revenue)"
        ],
        (0, 1, 0),
    ),
    "a state moved back": ([f"UPDATE demo.customers SET balance = balance - 1 WHERE id = {SOME_CUSTOMER}"], (0, 0, 1)),
    "a state of the ledger moved back": (
        [
            "UPDATE hookledger.resource_state SET state = jsonb_set(state, '{balance}', '-1') "
            f"WHERE handler = 'save_customer' AND resource = {SOME_CUSTOMER}"
        ],
        (0, 0, 1),
    ),
    "a customer deleted": ([f"UPDATE demo.customers SET deleted = true WHERE id = {SOME_CUSTOMER}"], (0, 0, 1)),
    "made pending again": (
        [
            f"DELETE FROM hookledger.effects WHERE event_id = {SMALLEST_CHARGE}",
            "INSERT INTO hookledger.pending (delivery_id) "
            f"SELECT id FROM hookledger.deliveries WHERE event_id = {SMALLEST_CHARGE}",
        ],
        (1, 0, 0),
    ),
    "all of it": (
        [
            f"DELETE FROM hookledger.effects WHERE event_id = {SMALLEST_CHARGE}",
            "INSERT INTO demo.commits SELECT * FROM demo.commits "
            "WHERE event_id = (SELECT min(event_id) FROM demo.commits)",
            f"UPDATE demo.customers SET balance = balance - 1 WHERE id = {SOME_CUSTOMER}",
        ],
        (1, 1, 1),
    ),
}


def run_demo(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), "demo", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        timeout=300,
    )


@pytest.mark.parametrize("framework", list(Framework))
def test_nothing_is_lost_doubled_or_misordered(framework: Framework, tmp_path: Path) -> None:
    done = run_demo("--deliveries", str(DELIVERIES), "--framework", framework.value, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    result = json.loads(done.stdout)
    assert list(result) == KEYS
    assert (result["lost"], result["doubled"], result["misordered"]) == (0, 0, 0)
    assert result["sent"] == result["accepted"] == DELIVERIES + COPIES
    assert result["unique"] == DELIVERIES == result["applied"] + result["stale"] + result["superseded"]
    assert result["stale"] > 0
    assert result["workers_killed"] == 1
    # What was under way when the receiver was killed had to be sent again.
    assert result["resent"] > COPIES
    assert result["seconds"] > 0
    assert "killed a worker with SIGKILL" in done.stderr
    assert "killed the receiver with SIGKILL" in done.stderr


def test_without_kills_nothing_has_to_be_tried_again(tmp_path: Path) -> None:
    done = run_demo("--deliveries", "200", "--workers", "1", "--no-kill", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = {line[:20].strip(): line[20:].split()[0] for line in done.stdout.splitlines()}
    expected = {"sent": "240", "accepted": "240", "unique": "200", "resent": "40", "workers killed": "0"}
    assert {name: shown[name] for name in expected} == expected
    assert [shown[name] for name in ("lost", "doubled", "misordered")] == ["0", "0", "0"]
    assert "SIGKILL and started" not in done.stderr


def test_a_single_delivery(tmp_path: Path) -> None:
    done = run_demo("--deliveries", "1", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["unique"] == 1


@pytest.mark.parametrize(("package", "framework"), [("uvicorn", "starlette"), ("gunicorn", "flask")])
def test_a_missing_extra_is_named(package: str, framework: str, tmp_path: Path) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; from hookledger.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "demo", "--framework", framework],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=clean_environment(),
        timeout=60,
    )
    assert_told_in_one_sentence(done, 2, package, 'pip install "hookledger[demo]"')


def tamper(connection: Connection, statements: list[str]) -> None:
    for statement in statements:
        assert connection.execute(text(statement)).rowcount > 0, statement


def test_tampering_is_found_and_told_by_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The database of one run is tampered with in each way; the last one stays, for the run itself to find."""
    tampered: dict[str, Evidence] = {}

    def gather_all(connection: Connection) -> Evidence:
        for name, (statements, _) in TAMPERING.items():
            with connection.begin_nested() as undone:
                tamper(connection, statements)
                tampered[name] = gather(connection)
                undone.rollback()
        return tampered["all of it"]

    monkeypatch.setattr(demo, "gather", gather_all)
    status = run_command(["demo", "--deliveries", str(DELIVERIES), "--no-kill", "--json"])
    told = capsys.readouterr()
    assert status == 1
    result = json.loads(told.out)
    assert (result["lost"], result["doubled"], result["misordered"]) == (1, 1, 1)
    assert "error: 1 lost, 1 doubled, 1 misordered" in told.err
    assert "lost: charge.succeeded evt_" in told.err
    events = make_traffic(DELIVERIES).events
    verdicts = {name: check(events, {event.key for event in events}, found) for name, found in tampered.items()}
    assert {name: (verdict.lost, verdict.doubled, verdict.misordered) for name, verdict in verdicts.items()} == {
        name: expected for name, (_, expected) in TAMPERING.items()
    }
    assert verdicts["nothing"] == Verdict()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for temporary files in which everything that a demo leaves would be. Short, and open to `nobody`."""
    folder = Path(tempfile.mkdtemp(prefix="hl-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    for process in processes_of(folder):
        process.kill()
    shutil.rmtree(folder)


def processes_of(folder: Path) -> list[psutil.Process]:
    """The processes that were started with this folder for temporary files, or with a path in it."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values()]
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            continue
        if alive and any(str(folder) in word for word in words):
            found.append(process)
    return found


def start_demo(folder: Path, framework: Framework) -> Child:
    arguments = ("demo", "--deliveries", MANY, "--framework", framework.value, "--json")
    return Child(COMMAND, *arguments, env={"TMPDIR": str(folder)}, cwd=folder)


def wait_for_all_to_run(child: Child, folder: Path) -> None:
    """Until it sends, and all that it consists of runs."""
    child.wait_for_output("sent ")
    running = processes_of(folder)
    words = [" ".join(process.cmdline()) for process in running]
    for part in ("bin/hookledger demo", "guard.py", "bin/postgres -D", "child", " receive ", " worker "):
        assert any(part in word for word in words), (part, words)
    assert list(folder.iterdir())


@pytest.mark.parametrize(
    ("number", "framework"),
    [(signal.SIGINT, Framework.FLASK), (signal.SIGTERM, Framework.STARLETTE)],
)
def test_interrupted_while_it_sends_it_leaves_nothing(
    number: signal.Signals, framework: Framework, folder: Path
) -> None:
    with start_demo(folder, framework) as child:
        wait_for_all_to_run(child, folder)
        # Ctrl-C in a terminal reaches the whole process group.
        os.killpg(child.pid, number)
        assert child.wait() == 130
        assert processes_of(folder) == []
        assert list(folder.iterdir()) == []
        assert "Traceback" not in child.output


@pytest.mark.parametrize(("at", "times"), [("PostgreSQL", 1), ("receiver (", 3)])
def test_interrupted_while_it_starts_it_leaves_nothing(at: str, times: int, folder: Path) -> None:
    with start_demo(folder, Framework.STARLETTE) as child:
        child.wait_for_output(at)
        for _ in range(times):
            os.killpg(child.pid, signal.SIGINT)
        assert child.wait() == 130
        assert processes_of(folder) == []
        assert list(folder.iterdir()) == []
        assert "Traceback" not in child.output


@pytest.mark.parametrize("framework", list(Framework))
def test_killed_it_leaves_nothing_either(framework: Framework, folder: Path) -> None:
    with start_demo(folder, framework) as child:
        wait_for_all_to_run(child, folder)
        child.kill()
        wait_until(lambda: not processes_of(folder) and not list(folder.iterdir()))


def test_a_part_that_dies_ends_it(folder: Path) -> None:
    with start_demo(folder, Framework.STARLETTE) as child:
        wait_for_all_to_run(child, folder)
        worker = next(process for process in processes_of(folder) if "worker" in process.cmdline())
        worker.terminate()
        assert child.wait() == 1
        assert "error: worker 1 ended with status 0" in child.output
        assert processes_of(folder) == []
        assert list(folder.iterdir()) == []
