"""The names that users write against, on an installed package: run over the built wheel by verify.sh.

This file imports nothing of the test suite, so that it can be copied to where only the wheel can be found.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, create_engine, text

import hookledger
from hookledger import Delivery, Headers, Inbox, Request, hmac_source, migrate
from hookledger.embedded import EmbeddedPostgres
from hookledger.receive import Intake
from hookledger.worker import Worker

PUBLIC = {
    "hookledger": {
        "Delivery",
        "Event",
        "Headers",
        "HookledgerError",
        "Inbox",
        "Reject",
        "Request",
        "Response",
        "Retry",
        "RetryPolicy",
        "SetupError",
        "Source",
        "github",
        "hmac_source",
        "standard_webhooks",
        "stripe",
    },
    "hookledger.receive": {"Intake", "IntakeSettings", "Quarantine"},
    "hookledger.testing": {
        "InboxClient",
        "LedgerDatabase",
        "WorkReport",
        "assert_converges",
        "run_worker_until_idle",
        "signed",
    },
    "hookledger.worker": {"Outcome", "Settled", "Worker", "WorkerSettings"},
}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with EmbeddedPostgres() as server:
        engine = create_engine(server.url)
        yield engine
        engine.dispose()


@pytest.mark.parametrize("module", PUBLIC)
def test_all_is_the_public_surface(module: str) -> None:
    found = importlib.import_module(module)
    assert set(found.__all__) == PUBLIC[module]
    assert all(hasattr(found, name) for name in PUBLIC[module])


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(hookledger.__file__).parent / "py.typed").exists()


def test_importing_the_core_imports_no_framework_and_no_command_line() -> None:
    code = (
        "import sys, hookledger, hookledger.receive, hookledger.worker, hookledger.migrate\n"
        "print([name for name in ('starlette', 'flask', 'typer', 'rich', 'uvicorn') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_the_command_is_installed() -> None:
    command = Path(sys.executable).with_name("hookledger")
    printed = subprocess.run([command, "--help"], capture_output=True, text=True, check=True).stdout
    assert all(name in printed for name in ("db", "worker", "dev", "status", "send", "demo"))


def test_an_event_goes_all_the_way(engine: Engine) -> None:
    migrate.upgrade(engine)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE received (event_id text)"))
    inbox = Inbox(hmac_source("shop", header="X-Sig", secrets="k-test-1", resource="resource", version="version"))

    @inbox.snapshot("shop", "order.*")
    def save_order(delivery: Delivery, tx: Connection) -> dict[str, object]:
        return dict(delivery.data)

    @inbox.accumulate("shop", "order.*")
    def note(delivery: Delivery, tx: Connection) -> None:
        tx.execute(text("INSERT INTO received VALUES (:id)"), {"id": delivery.event_id})

    body = json.dumps({"id": "e1", "type": "order.paid", "resource": "o1", "version": 3}).encode()
    signature = hmac.new(b"k-test-1", body, hashlib.sha256).hexdigest()
    request = Request("shop", "POST", Headers([("X-Sig", signature)]), body)
    intake = Intake(inbox, engine)
    assert [intake.receive_blocking(request).status for _ in range(3)] == [200, 200, 200]
    intake.close()
    asyncio.run(Worker(inbox, engine).run_until_idle())
    with engine.connect() as connection:
        assert connection.execute(text("SELECT event_id FROM received")).scalars().all() == ["e1"]
        state = connection.execute(text("SELECT state ->> 'version' FROM hookledger.resource_state")).scalar_one()
        assert state == "3"
