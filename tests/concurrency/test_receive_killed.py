"""Every 2xx has its committed row with the exact bytes, whoever is killed (D1, B019)."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from hookledger.embedded import EmbeddedPostgres
from hookledger.http import Request
from hookledger.inbox import Inbox
from tests.adapters.wire import Wire, head, signed
from tests.concurrency.senders import Senders
from tests.ledger import Ledger
from tests.processes import Child, wait_until
from tests.receiving import WAYS, Receiving, shop
from tests.receiving import signed as signed_by

ROUNDS = 50


def stored(ledger: Ledger) -> dict[str, bytes]:
    deliveries = ledger.deliveries()
    found = {delivery.event_id: delivery.body for delivery in deliveries}
    assert len(found) == len(deliveries)
    return found


def expect_all(ledger: Ledger, senders: Senders) -> None:
    """Everything that was acknowledged is there, byte for byte, once, and waits for a worker."""
    found = stored(ledger)
    lost = [event for event, body in senders.acknowledged.items() if found.get(event) != body]
    assert lost == []
    assert set(senders.acknowledged) <= set(ledger.pending())
    assert ledger.consistent()


@contextmanager
def forking(kind: str, database_url: str, project_root: Path) -> Iterator[tuple[Child, int]]:
    """The program that forks servers, and the port they serve."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        port: int = listener.getsockname()[1]
        arguments = [kind, str(listener.fileno()), json.dumps({"database_url": database_url})]
        with Child(
            "-m", "tests.concurrency.forking", *arguments, cwd=project_root, pass_fds=[listener.fileno()]
        ) as child:
            yield child, port


@pytest.mark.parametrize("kind", ["starlette", "starlette-async"])
def test_b019_every_acknowledged_event_survives_the_kill_of_the_server(
    kind: str, database_url: str, project_root: Path
) -> None:
    chance = random.Random(19)
    with forking(kind, database_url, project_root) as (child, port):

        def send(body: bytes, event: str) -> int:
            with Wire(port) as wire:
                wire.send(head("POST", "/webhooks/hub", [("Content-Length", str(len(body))), *signed(body, event)]))
                wire.send(body)
                return wire.answer().status

        def start() -> int:
            before = child.output.count("serving ")
            child.send("start")
            wait_until(lambda: child.output.count("serving ") > before and child.output.endswith("\n"))
            return int(child.output.split("serving ")[-1].split()[0])

        with Senders(send) as senders:
            for _ in range(ROUNDS):
                senders.at(chance.randint(1, 40), partial(os.kill, start(), signal.SIGKILL))
            start()
            senders.at(10, lambda: None)
    assert len(senders.acknowledged) > ROUNDS
    expect_all(Ledger(database_url), senders)


@pytest.mark.parametrize("way", WAYS)
def test_every_acknowledged_event_survives_the_kill_of_postgresql(
    way: str, own_server: EmbeddedPostgres, own_database_url: str
) -> None:
    chance = random.Random(20)
    source = shop(event_id="header:X-Event-Id")
    with Receiving(way, own_database_url, inbox=Inbox(source)) as receiving:

        def send(body: bytes, event: str) -> int:
            request: Request = signed_by(source, body, [("X-Event-Id", event)])
            return receiving.post(request).status

        with Senders(send) as senders:
            for _ in range(4):
                senders.at(chance.randint(50, 200), own_server.kill)
                own_server.start()
            senders.at(50, lambda: None)
    assert senders.statuses <= {200, 503}
    found = stored(Ledger(own_database_url))
    assert [event for event, body in senders.acknowledged.items() if found.get(event) != body] == []
    assert Ledger(own_database_url).consistent()
