"""`hookledger worker`: a real process that works, is told to stop, and stops."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from hookledger import Headers, Request, Source, stripe
from hookledger.inbox import Inbox
from hookledger.receive import Intake
from tests.end_to_end.command import HANDLER, HOOKS, SECRET, Project
from tests.processes import wait_until

WAITING_HANDLER = """
import os, pathlib, time

FOLDER = pathlib.Path(os.environ["TEST_FOLDER"])

@inbox.accumulate("stripe", "charge.*")
def wait(delivery: Delivery, tx: Connection) -> None:
    (FOLDER / "started").touch()
    while not (FOLDER / "release").exists():
        time.sleep(0.01)
"""

ASYNC_HANDLERS = """
from sqlalchemy.ext.asyncio import AsyncConnection

@inbox.accumulate("stripe", "charge.*")
async def add_revenue(delivery: Delivery, tx: AsyncConnection) -> None:
    await tx.execute(text("SELECT 1"))

@inbox.accumulate("stripe", "charge.*")
def count_charges(delivery: Delivery, tx: Connection) -> None:
    tx.execute(text("SELECT 1"))
"""


def record(engine: Engine, event_id: str = "evt_1") -> None:
    """Give the ledger one event of Stripe, as a receiver does."""
    source: Source = stripe(secrets=SECRET)
    body = json.dumps(
        {"id": event_id, "type": "charge.succeeded", "created": 1700000000, "data": {"object": {"id": "ch_1"}}}
    ).encode()
    assert source.sign is not None
    headers: Headers = source.sign(body, time.time())
    intake = Intake(Inbox(source), engine)
    assert intake.receive_blocking(Request("stripe", "POST", headers, body)).status == 200
    intake.close()


def outcomes(engine: Engine) -> list[tuple[str, str]]:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT handler, outcome FROM hookledger.effects ORDER BY handler"))
        return [(handler, outcome) for handler, outcome in rows]


def pending(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return list(connection.execute(text("SELECT attempts FROM hookledger.pending")).scalars())


@pytest.fixture
def project(tmp_path: Path, database_url: str) -> Project:
    """A project with a handler that waits for the file `release`."""
    project = Project(tmp_path, database_url)
    project.write("hooks.py", HOOKS + HANDLER)
    project.write("waiting.py", HOOKS + WAITING_HANDLER)
    project.write("asynchronous.py", HOOKS + ASYNC_HANDLERS)
    return project


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_works_until_it_is_stopped(project: Project, engine: Engine, number: signal.Signals) -> None:
    with project.start("worker", "hooks:inbox", "--slots", "2") as worker:
        ready = worker.wait_for_output("worker ready")
        assert "2 slots, 1 handler, database 'hookledger_test" in ready
        assert ready.endswith("schema hookledger")
        record(engine)
        wait_until(lambda: outcomes(engine))
        worker.signal(number)
        assert worker.wait() == 0
        assert f"stopping on {number.name}" in worker.output
        assert "Traceback" not in worker.output
    assert outcomes(engine) == [("add_revenue", "applied")]
    assert pending(engine) == []


def test_asynchronous_and_synchronous_handlers_together(project: Project, engine: Engine) -> None:
    record(engine)
    with project.start("worker", "asynchronous:inbox") as worker:
        wait_until(lambda: len(outcomes(engine)) == 2)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.output
    assert outcomes(engine) == [("add_revenue", "applied"), ("count_charges", "applied")]


def test_a_running_handler_is_waited_for(project: Project, engine: Engine) -> None:
    record(engine)
    folder = project.folder
    with project.start("worker", "waiting:inbox", env={"TEST_FOLDER": str(folder)}) as worker:
        wait_until((folder / "started").exists)
        worker.signal(signal.SIGTERM)
        worker.wait_for_output("stopping on SIGTERM")
        assert worker.running
        (folder / "release").touch()
        assert worker.wait() == 0, worker.output
    assert outcomes(engine) == [("wait", "applied")]


def test_a_second_signal_gives_up_what_is_running(project: Project, engine: Engine) -> None:
    record(engine)
    folder = project.folder
    # With --grace 600 only the second signal can end it before the test's own deadline.
    with project.start("worker", "waiting:inbox", "--grace", "600", env={"TEST_FOLDER": str(folder)}) as worker:
        wait_until((folder / "started").exists)
        worker.signal(signal.SIGINT)
        worker.wait_for_output("stopping on SIGINT")
        worker.signal(signal.SIGINT)
        assert worker.wait() == 1
        assert "error: a handler did not end in time" in worker.output
        assert "Traceback" not in worker.output
    assert outcomes(engine) == []
    assert pending(engine) == [0]  # given back with its attempt refunded


def test_a_third_signal_ends_even_a_handler_that_blocks_the_event_loop(project: Project, engine: Engine) -> None:
    blocking = WAITING_HANDLER.replace("def wait", "async def wait").replace("tx: Connection", "tx: AsyncConnection")
    project.write("blocking.py", f"{HOOKS}\nfrom sqlalchemy.ext.asyncio import AsyncConnection\n{blocking}")
    record(engine)
    folder = project.folder
    with project.start("worker", "blocking:inbox", "--grace", "600", env={"TEST_FOLDER": str(folder)}) as worker:
        wait_until((folder / "started").exists)
        for times in (1, 2, 3):
            worker.signal(signal.SIGTERM)
            wait_until(lambda: worker.output.count("stopping") == times or not worker.running)  # noqa: B023
        assert worker.wait() == 1
        assert "error: ended at once" in worker.output


def test_the_grace_time_ends(project: Project, engine: Engine) -> None:
    record(engine)
    folder = project.folder
    with project.start("worker", "waiting:inbox", "--grace", "0", env={"TEST_FOLDER": str(folder)}) as worker:
        wait_until((folder / "started").exists)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 1
    assert pending(engine) == [0]


def test_logs_as_json(project: Project, engine: Engine) -> None:
    project.write("failing.py", HOOKS + HANDLER.replace('tx.execute(text("SELECT 1"))', 'raise ValueError("no")'))
    record(engine)
    with project.start("--log-level", "info", "worker", "failing:inbox", "--log-format", "json") as worker:
        line = json.loads(worker.wait_for_output("failed in"))
        assert line["level"] == "warning"
        assert line["handler"] == "add_revenue"
        assert line["delivery_id"] == 1
        ready = json.loads(worker.output.splitlines()[0])
        assert ready["message"].startswith("worker ready")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0


def test_a_quiet_worker_says_nothing(project: Project, engine: Engine) -> None:
    record(engine)
    with project.start("worker", "hooks:inbox", "--log-level", "warning") as worker:
        wait_until(lambda: outcomes(engine))
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
        assert worker.output.splitlines() == ["stopping on SIGTERM; once more to give up what is running"]
