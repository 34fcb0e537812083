"""Every step of the worker's cycle, struck one after the other: wherever it is struck, the books balance, and nobody
is charged (D6, D10)."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy.exc import DBAPIError

import hookledger.worker.runner
from hookledger.errors import DatabaseUnreachable
from tests.faults.books import TABLES, Event, Journal, read_books
from tests.faults.conftest import one_of
from tests.faults.hooks import FAILS_ONCE, REJECTED, inbox_of
from tests.faults.trips import Strike, Trip, Trips
from tests.outcomes import Ledger
from tests.processes import wait_until
from tests.ways import WAYS, Way

LEAST_STEPS, MOST_STEPS = 40, 200
MAX_ATTEMPTS = 4

# Those of the session's start come before, such as what SQLAlchemy asks of a server that it does not know.
FIRST_STEP = "pg_settings"


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """A ledger with the handlers' tables."""
    ledger = Ledger(database_url)
    for table in TABLES:
        ledger.execute(table)
    yield ledger
    ledger.engine.dispose()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again soon after an outage: there are hundreds of them."""
    monkeypatch.setattr(hookledger.worker.runner, "SHORTEST_PAUSE", 0.005)


class Walk:
    """A worker that is run again and again, each time struck one step later.

    Args:
        way: how it runs handlers.
        ledger: to be worked on.
        url: of its database.
    """

    def __init__(self, way: Way, ledger: Ledger, url: str) -> None:
        self.ledger = ledger
        self.journal = Journal()
        self._way = way
        self._url = url
        self._flaky: set[str] = set()
        self._doomed: set[str] = set()

    def record(self, number: int) -> None:
        """Record what one run works on: of each thing that can become of a delivery, one."""

        def event(name: str, resource: str, version: int, type: str = "thing") -> Event:
            return Event(f"{name}-{number}", f"{resource}-{number % 3}", version, type)

        events = [
            event("new", "a", 2 * number),
            event("older", "a", 2 * number - 1),
            event("other", "b", number),
            event("flaky", "c", number, FAILS_ONCE),
            event("doomed", "d", number, REJECTED),
            event("crashed", "e", number),
            event("poison", "f", number),
        ]
        for one in events:
            self.journal.send(one)
            self.journal.acknowledge(one)
        self.ledger.record(*[one.body for one in events])
        for name, attempts in (("crashed", 1), ("poison", MAX_ATTEMPTS)):
            # As a worker leaves them that died with them.
            self.ledger.execute(
                "UPDATE hookledger.pending SET attempts = :attempts, revisited = true FROM hookledger.deliveries"
                " WHERE id = delivery_id AND event_id = :event",
                attempts=attempts,
                event=f"{name}-{number}",
            )
        self._flaky.add(f"flaky-{number}")
        self._doomed |= {f"doomed-{number}", f"poison-{number}"}

    def work(self, url: str) -> None:
        """Run a worker until nothing is due."""
        inbox = inbox_of(self._way, max_attempts=MAX_ATTEMPTS, first_delay=3600, longest_delay=3600)
        self._way.work(url, inbox, slots=1, batch=10)

    def run(self, *, before: Strike | None = None, after: Strike | None = None, charged: bool = False) -> None:
        """Strike every step. After each the run is over with all that can be settled.

        Args:
            before, after: what is done at each; `after` also while the worker starts.
            charged: whether a handler whose own statement is struck has failed.
        """
        steps = 0
        with Trips(self._url) as trips:
            self.record(0)
            trips.strike_at(None)
            self.work(trips.url)
            first = next(number for number, words in enumerate(trips.trips, 1) if FIRST_STEP in words)
            for number in range(first if after is None else 1, MOST_STEPS):
                self.record(number)
                trips.strike_at(number, before=before, after=after)
                try:
                    self.work(trips.url)
                except (DatabaseUnreachable, DBAPIError):
                    # While it starts it says so and ends; whoever supervises it starts it again.
                    assert number < first, trips.struck
                    self.work(trips.url)
                self.expect_done(trips.struck, charged=charged)
                if trips.struck is None:
                    break
                steps += number >= first
        assert LEAST_STEPS <= steps < MOST_STEPS - first
        self.ledger.make_due()
        self.work(self._url)
        books = read_books(self._url, self.journal)
        assert books.balanced, str(books)
        assert books.pending == []
        assert set(books.dead) == self._doomed

    def expect_done(self, step: str | None, *, charged: bool) -> None:
        """All is settled but what failed, and that was charged once."""
        books = read_books(self._url, self.journal)
        assert books.balanced, f"struck at {step}: {books}"
        if charged:
            return
        assert set(books.dead) == self._doomed, step
        assert {name: row.attempts for name, row in self.ledger.pending().items()} == dict.fromkeys(self._flaky, 1), (
            step
        )
        late = self.ledger.value(
            "SELECT string_agg(event_id, ' ') FROM entries"
            " WHERE attempt <> CASE WHEN event_id LIKE 'crashed-%' THEN 2 ELSE 1 END"
        )
        assert late is None, f"struck at {step}: {late}"
        failed = [failure.event_id for failure in self.ledger.failures()]
        assert sorted(failed) == sorted(name for name in self._flaky | self._doomed if "poison" not in name), step


SYNC, ASYNC = WAYS[0], WAYS[2]


@pytest.fixture
def walk(way: Way, ledger: Ledger, database_url: str) -> Walk:
    return Walk(way, ledger, database_url)


def cutting(walk: Walk) -> Strike:
    """The server ends the connection."""

    def cut(trip: Trip) -> None:
        assert walk.ledger.value("SELECT pg_terminate_backend(:pid, 10000)", pid=trip.backend)

    return cut


@pytest.mark.parametrize("way", one_of(SYNC, ASYNC), ids=lambda way: way.name)
def test_the_connection_is_cut_before_every_step(walk: Walk) -> None:
    walk.run(before=cutting(walk))


@pytest.mark.parametrize("way", one_of(ASYNC, SYNC), ids=lambda way: way.name)
def test_the_connection_is_cut_when_a_step_is_done_and_before_that_is_heard(walk: Walk) -> None:
    walk.run(after=cutting(walk))


@pytest.mark.parametrize("way", one_of(SYNC, ASYNC), ids=lambda way: way.name)
def test_every_step_is_cancelled(walk: Walk) -> None:
    """In place of each step the server gets one that takes long, and is cancelled."""

    def cancel(pid: int) -> None:
        running = "WHERE pid = :pid AND state = 'active' AND query LIKE 'SELECT pg_sleep%'"
        wait_until(
            lambda: walk.ledger.execute(f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity {running}", pid=pid)
        )

    def replace(trip: Trip) -> None:
        trip.instead = "SELECT pg_sleep(60)"
        threading.Thread(target=cancel, args=(trip.backend,), daemon=True).start()

    walk.run(before=replace, charged=True)


@pytest.mark.parametrize("way", one_of(ASYNC, SYNC), ids=lambda way: way.name)
def test_the_disk_is_full_at_every_step(walk: Walk) -> None:
    def refuse(trip: Trip) -> None:
        trip.instead = "DO $$ BEGIN RAISE disk_full; END $$"

    walk.run(before=refuse)
