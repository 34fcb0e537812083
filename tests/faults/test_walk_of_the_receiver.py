"""Every step of a receiver with the ledger, struck one after the other: what is not acknowledged is sent again, and
what is acknowledged is there once (D1, D4)."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from hookledger.http import Request
from tests.faults.conftest import one_of
from tests.faults.trips import Strike, Trip, Trips
from tests.ledger import Ledger
from tests.processes import wait_until
from tests.receiving import WAYS, Receiving, event, many, signed

THREADS, LOOP = WAYS[0], WAYS[2]
"""With a synchronous engine, and with an asynchronous one."""
LEAST_STEPS = 5
MOST_STEPS = 60
TRIES = 5
"""How often a sender sends an event, at the most, until it is acknowledged: one strike costs one try or none."""


@pytest.fixture
def ledger(database_url: str) -> Ledger:
    return Ledger(database_url)


@pytest.fixture
def trips(database_url: str) -> Iterator[Trips]:
    with Trips(database_url) as trips:
        yield trips


class Walk:
    """A receiver that gets the same kinds of requests again and again, each time struck one step later."""

    def __init__(self, way: str, ledger: Ledger, trips: Trips) -> None:
        self._way = way
        self._ledger = ledger
        self._trips = trips
        self._acknowledged: dict[str, bytes] = {}
        self.steps = 0

    def run(self, *, before: Strike | None = None, after: Strike | None = None) -> None:
        """Strike every step."""
        for number in range(1, MOST_STEPS):
            with Receiving(self._way, self._trips.url) as receiving:
                self._trips.strike_at(number, before=before, after=after)
                new, listed = event(f"new-{number}"), f"listed-{number}"
                # What is new, a copy, and a request of several events of which one is known.
                self._send(receiving, new)
                self._send(receiving, new)
                self._send(receiving, signed(many(), [{"id": listed}]))
                self._send(receiving, signed(many(), [{"id": listed}, {"id": f"more-{number}"}]))
                step = self._trips.struck
            found = [(delivery.source, delivery.event_id) for delivery in self._ledger.deliveries()]
            expected = [
                pair
                for done in range(1, number + 1)
                for pair in (("shop", f"new-{done}"), ("many", f"listed-{done}"), ("many", f"more-{done}"))
            ]
            assert sorted(found) == sorted(expected), step
            assert self._ledger.delivery(f"new-{number}").body == new.body
            assert self._ledger.consistent(), step
            if step is None:
                break
            self.steps = number
        assert LEAST_STEPS <= self.steps < MOST_STEPS - 1

    def _send(self, receiving: Receiving, request: Request) -> None:
        statuses: list[int] = []
        while not statuses or statuses[-1] != 200:
            statuses.append(receiving.post(request).status)
            assert len(statuses) <= TRIES, (statuses, self._trips.struck)
        assert set(statuses) <= {200, 503}


@pytest.fixture
def walk(way: str, ledger: Ledger, trips: Trips) -> Walk:
    return Walk(way, ledger, trips)


def cutting(ledger: Ledger) -> Strike:
    """The server ends the connection."""

    def cut(trip: Trip) -> None:
        assert ledger.run("SELECT pg_terminate_backend(:pid, 10000)", pid=trip.backend)

    return cut


@pytest.mark.parametrize("way", one_of(THREADS, LOOP))
def test_the_connection_is_cut_before_every_step(walk: Walk, ledger: Ledger) -> None:
    walk.run(before=cutting(ledger))


@pytest.mark.parametrize("way", one_of(LOOP, THREADS))
def test_the_connection_is_cut_when_a_step_is_done_and_before_that_is_heard(walk: Walk, ledger: Ledger) -> None:
    walk.run(after=cutting(ledger))


@pytest.mark.parametrize("way", one_of(THREADS, LOOP))
def test_every_step_is_cancelled(walk: Walk, ledger: Ledger) -> None:
    """In place of each step the server gets one that takes long, and is cancelled."""

    def cancel(pid: int) -> None:
        running = "WHERE pid = :pid AND state = 'active' AND query LIKE 'SELECT pg_sleep%'"
        wait_until(lambda: ledger.run(f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity {running}", pid=pid))

    def replace(trip: Trip) -> None:
        trip.instead = "SELECT pg_sleep(60)"
        threading.Thread(target=cancel, args=(trip.backend,), daemon=True).start()

    walk.run(before=replace)


@pytest.mark.parametrize(
    ("way", "name"),
    [
        *[(way, "disk_full") for way in one_of(LOOP, THREADS)],
        *[(way, "read_only_sql_transaction") for way in one_of(THREADS, LOOP)],
    ],
)
def test_the_server_refuses_every_step(walk: Walk, name: str) -> None:
    def refuse(trip: Trip) -> None:
        trip.instead = f"DO $$ BEGIN RAISE {name}; END $$"

    walk.run(before=refuse)
