"""Every step of a receiver with the ledger, struck one after the other: what is not acknowledged is sent again, and
what is acknowledged is there once (D1, D4)."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from hookledger.http import Request
from tests.faults.trips import Strike, Trip, Trips
from tests.ledger import Ledger
from tests.processes import wait_until
from tests.receiving import Receiving, event, many, signed

LEAST_STEPS = 5
MOST_STEPS = 60
TRIES = 5
"""How often a sender sends an event, at the most, until it is acknowledged: one strike costs one try or none."""


@pytest.fixture(params=["threads", "loop-async"])
def way(request: pytest.FixtureRequest) -> str:
    """A synchronous and an asynchronous engine."""
    chosen: str = request.param
    return chosen


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
        statuses = []
        while not statuses or statuses[-1] != 200:
            statuses.append(receiving.post(request).status)
            assert len(statuses) <= TRIES, (statuses, self._trips.struck)
        assert set(statuses) <= {200, 503}


@pytest.fixture
def walk(way: str, ledger: Ledger, trips: Trips) -> Walk:
    return Walk(way, ledger, trips)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_the_connection_is_cut_at_every_step(walk: Walk, ledger: Ledger, moment: str) -> None:
    def cut(trip: Trip) -> None:
        assert ledger.run("SELECT pg_terminate_backend(:pid, 10000)", pid=trip.backend)

    walk.run(**{moment: cut})


def test_every_step_is_cancelled(walk: Walk, ledger: Ledger) -> None:
    """In place of each step the server gets one that takes long, and is cancelled."""

    def cancel(pid: int) -> None:
        running = "WHERE pid = :pid AND state = 'active' AND query LIKE 'SELECT pg_sleep%'"
        wait_until(lambda: ledger.run(f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity {running}", pid=pid))

    def replace(trip: Trip) -> None:
        trip.instead = "SELECT pg_sleep(60)"
        threading.Thread(target=cancel, args=(trip.backend,), daemon=True).start()

    walk.run(before=replace)


@pytest.mark.parametrize("code", ["53100", "25006"])
def test_the_server_refuses_every_step(walk: Walk, code: str) -> None:
    """disk_full and read_only_sql_transaction, wherever they are met."""

    def refuse(trip: Trip) -> None:
        trip.instead = f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}', MESSAGE = 'refused'; END $$"

    walk.run(before=refuse)
