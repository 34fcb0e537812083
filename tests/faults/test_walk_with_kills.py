"""Processes that are killed at every step of theirs, one after the other (D1, D6, D10).

A kill changes what becomes of a transaction only around its beginning and its end, so it is those that are walked; with
HOOKLEDGER_EVERY_STEP=1 in the environment all of them are.
"""

from __future__ import annotations

import http.client
import os
import signal
from collections.abc import Iterator

import pytest

from tests.faults.books import Event, read_books
from tests.faults.conftest import EVERY_STEP, Deploy, one_of
from tests.faults.deployment import Deployment, Process
from tests.faults.trips import Trip, Trips
from tests.processes import wait_until

EDGES = ("BEGIN", "COMMIT", "ROLLBACK")
EVENTS = 6
LEAST_KILLS = 6


@pytest.fixture
def trips(database_url: str) -> Iterator[Trips]:
    with Trips(database_url) as trips:
        yield trips


class Victim:
    """The process that is killed at the next strike."""

    process: Process

    def kill(self, _: Trip) -> None:
        self.process.killed = True
        os.kill(self.process.pid, signal.SIGKILL)

    @property
    def gone(self) -> bool:
        return self.process.killed and not self.process.running


def record(deployment: Deployment, number: int) -> None:
    """Record what one worker is to work on."""
    events = [Event(f"e{number}-{one}", f"r{one % 2}", number * EVENTS + one) for one in range(EVENTS)]
    for event in events:
        deployment.journal.send(event)
        deployment.journal.acknowledge(event)
    deployment.ledger.record(*[event.body for event in events])


def due(deployment: Deployment) -> bool:
    """Whether anything waits that no worker has taken yet."""
    return any(row.attempts == 0 for row in deployment.ledger.pending().values())


@pytest.mark.parametrize("inbox", one_of("sync", "asynchronous"))
def test_a_worker_is_killed_at_every_step(deploy: Deploy, database_url: str, trips: Trips, inbox: str) -> None:
    deployment = deploy(database_url, inbox=inbox)
    victim = Victim()
    options = ["--slots", "1", "--batch", "20"]
    record(deployment, 0)
    trips.strike_at(None)
    seeing = deployment.start_worker(trips.url, options=options)
    wait_until(lambda: not deployment.ledger.pending())
    steps = list(trips.trips)
    seeing.kill()
    kills = 0
    for number, words in enumerate(steps, 1):
        if not EVERY_STEP and not words.startswith(EDGES):
            continue
        record(deployment, number)
        trips.strike_at(number, after=victim.kill)
        victim.process = deployment.start_worker(trips.url, options=options, wait=False)
        wait_until(lambda: victim.gone or not due(deployment))
        kills += victim.gone
        if not victim.gone:
            victim.process.kill()
        books = read_books(database_url, deployment.journal)
        assert books.balanced, f"killed after {words}: {books}"
    assert kills >= LEAST_KILLS
    # The time of those that were claimed by the dead comes.
    deployment.ledger.make_due()
    deployment.start_worker(options=options)
    deployment.expect_balanced()


@pytest.mark.parametrize("inbox", one_of("asynchronous", "sync"))
def test_a_receiver_is_killed_at_every_step(deploy: Deploy, database_url: str, trips: Trips, inbox: str) -> None:
    deployment = deploy(database_url, inbox=inbox)
    victim = Victim()
    kills = 0
    for number in range(1, 100):
        trips.strike_at(number, after=victim.kill)
        victim.process = deployment.start_receiver(trips.url)
        event = Event(f"e{number}", f"r{number % 3}", number)
        for _ in range(2):
            # The second one is a copy, whether the first was acknowledged or not.
            try:
                deployment.post(event)
            except (OSError, http.client.HTTPException):
                wait_until(lambda: victim.gone)
                victim.process = deployment.start_receiver()
                deployment.send(event)
        if trips.struck is None:
            break
        kills += 1
        victim.process.killed = True
        if victim.process.running:
            victim.process.kill()
    assert kills >= LEAST_KILLS
    deployment.start_worker()
    deployment.expect_balanced()
