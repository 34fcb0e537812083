"""A network that hands nothing on, and closes nothing, under the receiver, a worker, and the listener (D1, D10)."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from hookledger.embedded import EmbeddedPostgres
from hookledger.engine import create
from hookledger.worker.connector import Connector
from tests.faults.books import Event
from tests.faults.conftest import Deploy
from tests.faults.trips import Trip, Trips
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
        to_worker.pause()
        refused = senders.refused
        to_receiver.pause()
        wait_until(lambda: senders.refused > refused)
        to_receiver.resume()
        senders.at(20, lambda: None)
        to_worker.resume()
        deployment.wait_for_progress(10)
    deployment.expect_balanced()


@pytest.mark.parametrize("inbox", ["sync", "asynchronous"])
def test_a_worker_whose_machine_is_gone(deploy: Deploy, database_url: str, inbox: str) -> None:
    """In the middle of a transaction its network falls silent. As soon as the server has noticed that, others take over
    what it had; and should it come back, it finds out and goes on."""
    silent, back = threading.Event(), threading.Event()
    backends = []

    def fall_silent(trip: Trip) -> None:
        backends.append(trip.backend)
        silent.set()
        back.wait()

    deployment = deploy(database_url, inbox=inbox)
    deployment.start_receiver()
    with Trips(database_url) as trips:
        gone = deployment.start_worker(trips.url)
        deployment.start_worker()
        try:
            with deployment.sending() as senders:
                trips.strike_at("SAVEPOINT", before=fall_silent)
                wait_until(silent.is_set)
                senders.at(20, lambda: None)
                # What keepalives have it do after a while, which the proxy answers.
                deployment.ledger.execute("SELECT pg_terminate_backend(:pid, 10000)", pid=backends[0])
                deployment.wait_for_progress(30)
                back.set()
                gone.wait_for_output("cannot work, trying again")
                deployment.wait_for_progress(10)
            deployment.expect_balanced()
        finally:
            back.set()


def test_the_server_is_told_to_notice_machines_that_are_gone(own_server: EmbeddedPostgres) -> None:
    engine = create(own_server.tcp_url_of("postgres"))
    connection = Connector(engine).connection()
    shown = {
        name: connection.exec_driver_sql(f"SHOW {name}").scalar_one()
        for name in ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout")
    }
    assert list(shown.values()) == ["10", "3", "3", "10000"], shown
    connection.close()
    engine.dispose()


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
