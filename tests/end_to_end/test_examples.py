"""The examples do what they say, over real HTTP and in processes of their own."""

from __future__ import annotations

import http.client
import json
import random
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, make_url, text

from hookledger import Source, github, hmac_source, stripe
from tests.end_to_end.command import COMMAND
from tests.processes import Child, wait_until

STRIPE_SECRET = "whsec_c3RyaXBlLXRlc3Qtc2VjcmV0"
GITHUB_SECRET = "github-test-secret"
SHOP_SECRET = "shop-test-secret"


@pytest.fixture
def environment(database_url: str) -> dict[str, str]:
    """What the examples read, with the URL as a user writes it."""
    url = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    return {
        "DATABASE_URL": url,
        "STRIPE_WEBHOOK_SECRET": STRIPE_SECRET,
        "GITHUB_WEBHOOK_SECRET": GITHUB_SECRET,
        "SHOP_SECRET": SHOP_SECRET,
    }


@pytest.fixture
def examples(project_root: Path) -> Path:
    return project_root / "examples"


@contextmanager
def running(server: Sequence[str], examples: Path, environment: Mapping[str, str]) -> Iterator[tuple[int, Child]]:
    """A server on a socket that it inherits: its port, and the process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        descriptor = listener.fileno()
        port: int = listener.getsockname()[1]
        command = [part.replace("FD", str(descriptor)) for part in server]
        child = Child(*command, env=environment, cwd=examples, pass_fds=[descriptor])
    with child:
        yield port, child


def ask(port: int, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Any:
    """The status of the answer, and its document if it is JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        answered = response.read()
        is_json = response.getheader("content-type", "").startswith("application/json")
        return response.status, json.loads(answered) if is_json else None
    finally:
        connection.close()


def deliver(port: int, source: Source, documents: Sequence[Any], **given: str) -> None:
    """Send every document twice, in a random order."""
    assert source.sign is not None
    bodies = [json.dumps(document).encode() for document in documents] * 2
    random.shuffle(bodies)
    for body in bodies:
        headers = {**dict(source.sign(body, time.time())), "Content-Type": "application/json", **given}
        assert ask(port, "POST", f"/webhooks/{source.name}", body, headers)[0] == 200
    forged = {**dict(source.sign(b"{}", time.time())), "Content-Type": "application/json"}
    assert ask(port, "POST", f"/webhooks/{source.name}", b"{ }", forged)[0] == 401


def settled(engine: Engine) -> bool:
    """Whether no delivery is pending."""
    with engine.connect() as connection:
        return bool(connection.execute(text("SELECT NOT EXISTS (SELECT FROM hookledger.pending)")).scalar_one())


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_starlette_stripe(engine: Engine, examples: Path, environment: dict[str, str]) -> None:
    def customer(number: int, event_type: str, customer_id: str, email: str) -> dict[str, Any]:
        event = {"id": f"evt_{number}", "type": f"customer.{event_type}", "created": 1_700_000_000 + number}
        return {**event, "data": {"object": {"id": customer_id, "email": email}}}

    events = [
        customer(1, "created", "cus_1", "first@example.test"),
        customer(2, "updated", "cus_1", "second@example.test"),
        customer(3, "updated", "cus_1", "third@example.test"),
        customer(4, "created", "cus_2", "gone@example.test"),
        customer(5, "updated", "cus_2", "gone@example.test"),
        customer(6, "deleted", "cus_2", "gone@example.test"),
    ]
    events += [
        {
            "id": f"evt_charge_{number}",
            "type": "charge.succeeded",
            "created": 1_700_000_000,
            "data": {"object": {"id": f"ch_{number}", "amount": 100 + number, "currency": "eur"}},
        }
        for number in range(20)
    ]
    with running(["-m", "uvicorn", "starlette_stripe:app", "--fd", "FD"], examples, environment) as (port, _):
        deliver(port, stripe(secrets=STRIPE_SECRET), events)
        wait_until(lambda: settled(engine))
    assert rows(engine, "SELECT id, email FROM customers") == [("cus_1", "third@example.test")]
    assert rows(engine, "SELECT currency, cents FROM revenue") == [("eur", sum(100 + n for n in range(20)))]


def test_flask_github(engine: Engine, examples: Path, environment: dict[str, str]) -> None:
    def issue(minute: int, action: str, state: str) -> dict[str, Any]:
        found = {"id": 7, "title": f"at {minute}", "state": state, "updated_at": f"2026-01-01T00:{minute:02}:00Z"}
        return {"action": action, "issue": found}

    def push(commits: int) -> dict[str, Any]:
        return {"ref": f"refs/heads/{commits}", "commits": [{}] * commits, "repository": {"full_name": "acme/tools"}}

    with ExitStack() as stack:
        server = ["-m", "gunicorn", "--worker-class", "gthread", "--bind", "fd://FD", "flask_github:app"]
        port, _ = stack.enter_context(running(server, examples, environment))
        for _ in range(2):
            stack.enter_context(
                Child(COMMAND, "worker", "flask_github:inbox", "--slots", "1", env=environment, cwd=examples)
            )
        source = github(secrets=GITHUB_SECRET)
        deliver(port, source, [issue(1, "opened", "open"), issue(5, "closed", "closed"), issue(3, "edited", "open")])
        deliver(port, source, [push(commits) for commits in range(1, 6)])
        wait_until(lambda: settled(engine))
        assert ask(port, "GET", "/states/issue") == (200, {"issue/7": {"title": "at 5", "state": "closed"}})
        assert ask(port, "GET", "/states/pushes") == (200, {"acme/tools": {"pushes": 5, "commits": 15}})


def test_fastapi_async(engine: Engine, examples: Path, environment: dict[str, str]) -> None:
    def order(order_id: str, revision: int, kind: str, total: int) -> dict[str, Any]:
        event = {"id": f"evt_{order_id}_{revision}", "type": f"order.{kind}"}
        return {**event, "order": {"id": order_id, "revision": revision, "total": total}}

    events = [
        order("o_1", 9, "placed", 1000),
        order("o_1", 10, "changed", 1999),
        order("o_1", 11, "paid", 1999),
        order("o_2", 1, "placed", 5),
        order("o_3", 1, "placed", -5),
    ]
    source = hmac_source("shop", header="X-Shop-Signature", secrets=SHOP_SECRET)
    with running(["-m", "uvicorn", "fastapi_async:app", "--fd", "FD"], examples, environment) as (port, _):
        deliver(port, source, events)
        wait_until(lambda: settled(engine))
        assert ask(port, "GET", "/orders/o_1") == (200, {"status": "paid", "total": 1999})
        assert ask(port, "GET", "/orders/o_2") == (200, {"status": "placed", "total": 5})
        assert ask(port, "GET", "/orders/o_3")[0] == 404
    assert rows(engine, "SELECT reason FROM hookledger.dead_letters") == [("rejected",)]
