"""A network that hands nothing on, and closes nothing, under the receiver, a worker, and the listener (D1, D10)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.faults.books import Event
from tests.faults.conftest import Deploy
from tests.processes import wait_until
from tests.proxy import Proxy


@pytest.fixture
def proxies(database_url: str) -> Iterator[tuple[Proxy, Proxy]]:
    """One for the receiver, and one for a worker."""
    with Proxy(database_url) as one, Proxy(database_url) as another:
        yield one, another


@pytest.mark.parametrize("inbox", ["sync", "asynchronous"])
def test_a_silent_network(deploy: Deploy, database_url: str, proxies: tuple[Proxy, Proxy], inbox: str) -> None:
    to_receiver, to_worker = proxies
    deployment = deploy(database_url, inbox=inbox)
    deployment.start_receiver(to_receiver.url)
    deployment.start_worker(to_worker.url)
    deployment.start_worker()
    with deployment.sending() as senders:
        senders.at(20, lambda: None)
        deployment.wait_for_progress()
        # What the worker has in hand stays its own, and the other one works on.
        to_worker.pause()
        deployment.wait_for_progress(30)
        refused = senders.refused
        to_receiver.pause()
        wait_until(lambda: senders.refused > refused)
        to_receiver.resume()
        senders.at(20, lambda: None)
        to_worker.resume()
        deployment.wait_for_progress(30)
        # And once more, while the server gives up on it: another worker takes over what it had.
        to_worker.pause()
        deployment.wait_for_progress(30)
        deployment.ledger.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()"
        )
        deployment.wait_for_progress(30)
        to_worker.resume()
        senders.at(20, lambda: None)
    deployment.expect_balanced()


def test_b039_a_listener_that_hears_nothing(deploy: Deploy, database_url: str) -> None:
    """Its side of the server is stopped: what it would hear never comes, and nothing is closed. Polling is the base."""
    deployment = deploy(database_url)
    deployment.start(workers=1)
    (listener,) = wait_until(
        lambda: deployment.ledger.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"
        )
    )
    os.kill(listener.pid, signal.SIGSTOP)
    try:
        for number in range(5):
            deployment.send(Event(f"e{number}", "r0", number))
            wait_until(lambda: not deployment.ledger.pending())
        deployment.expect_balanced()
    finally:
        os.kill(listener.pid, signal.SIGCONT)
