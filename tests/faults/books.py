"""The books of a run: what was sent and acknowledged, held against what the database has of it at the end.

lost        an acknowledged event that is not in the ledger with its bytes; a delivery that is neither pending, dead nor
            settled; one whose outcome is `applied`, and its handler's writes are not there
doubled     what a handler wrote more often than once for one event, or for one that it has not applied; a number that
            was added twice; an event that nobody sent
moved back  a resource to which an older snapshot was applied after a newer one, or whose last state is not its newest

The handlers of `tests.faults.hooks` write what is read here: any run whose workers have that inbox can be balanced.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import URL, Connection, create_engine, text
from sqlalchemy.pool import NullPool

SOURCE = "shop"
WRITE, ADD, SAVE = "write", "add", "save"
HANDLERS = (WRITE, ADD, SAVE)
"""An accumulate handler that writes a row, one that returns a number to add, and a snapshot handler that does both."""

TABLES = (
    "CREATE TABLE entries (place bigserial PRIMARY KEY, handler text NOT NULL, event_id text NOT NULL,"
    " resource text NOT NULL, attempt integer NOT NULL)",
)
"""Without any key on the event: what is applied twice is there twice."""

APPLIED = "applied"
REFUSED = frozenset({"stale", "superseded"})

DELIVERIES = """
    SELECT d.id, d.event_id, p.body, e.id IS NOT NULL AS pending, l.reason
    FROM hookledger.deliveries d
    LEFT JOIN hookledger.payloads p ON p.id = d.payload_id AND p.received_at = d.received_at
    LEFT JOIN (SELECT delivery_id AS id FROM hookledger.pending) e ON e.id = d.id
    LEFT JOIN hookledger.dead_letters l ON l.delivery_id = d.id
"""
EFFECTS = "SELECT event_id, handler, outcome FROM hookledger.effects"
ENTRIES = "SELECT handler, event_id, resource FROM entries ORDER BY place"
STATES = "SELECT handler, resource, delivery_id, state::text AS state FROM hookledger.resource_state"


class Event(NamedTuple):
    """An event as its sender knows it.

    Args:
        event_id: its id.
        resource: what it is about.
        version: of the resource; higher is newer, whenever it is sent.
        type: of the event.
    """

    event_id: str
    resource: str
    version: int
    type: str = "thing"

    @property
    def body(self) -> bytes:
        """The bytes to send."""
        document = {"id": self.event_id, "type": self.type, "resource": self.resource, "version": self.version}
        return json.dumps(document).encode()


class Journal:
    """What the senders note of an event: each time that it is sent, and its acknowledgements. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: Counter[Event] = Counter()
        self._acknowledged: set[Event] = set()

    def send(self, event: Event) -> None:
        """It is going to be sent: once more, perhaps."""
        with self._lock:
            self._sent[event] += 1

    def acknowledge(self, event: Event) -> None:
        """It was answered 2xx."""
        with self._lock:
            self._acknowledged.add(event)

    @property
    def sent(self) -> Counter[Event]:
        """How often each was sent."""
        with self._lock:
            return Counter(self._sent)

    @property
    def acknowledged(self) -> frozenset[Event]:
        """Those that were answered 2xx at least once."""
        with self._lock:
            return frozenset(self._acknowledged)


@dataclass
class Books:
    """What came out of a run.

    Args:
        sent: requests, copies included.
        acknowledged: events that were answered 2xx.
        unique: different events that were sent.
        recorded: deliveries in the ledger. One whose answer was lost is there without having been acknowledged.
        outcomes: how many effects there are of each outcome, by handler.
        pending: events that still wait.
        dead: events that were given up, and why.
        lost, doubled, moved_back: each in words.
    """

    sent: int
    acknowledged: int
    unique: int
    recorded: int = 0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    pending: list[str] = field(default_factory=list)
    dead: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    moved_back: list[str] = field(default_factory=list)

    @property
    def balanced(self) -> bool:
        """Whether nothing is lost, nothing doubled and nothing moved back. What waits or was given up is neither."""
        return not (self.lost or self.doubled or self.moved_back)

    def __str__(self) -> str:
        outcomes = ", ".join(f"{name} {outcome} {count}" for (name, outcome), count in sorted(self.outcomes.items()))
        lines = [
            f"sent {self.sent}, acknowledged {self.acknowledged}, unique {self.unique}, recorded {self.recorded}",
            f"effects: {outcomes or 'none'}",
            f"pending {len(self.pending)}, dead {len(self.dead)}",
            f"lost {len(self.lost)}, doubled {len(self.doubled)}, moved back {len(self.moved_back)}",
            *(f"lost: {words}" for words in self.lost[:MOST_TOLD]),
            *(f"doubled: {words}" for words in self.doubled[:MOST_TOLD]),
            *(f"moved back: {words}" for words in self.moved_back[:MOST_TOLD]),
        ]
        return "\n".join(lines)


MOST_TOLD = 20


def read_books(url: str | URL, journal: Journal) -> Books:
    """The books as they are now, read in one snapshot.

    Args:
        url: of the database with the ledger and the handlers' tables, as a role that may read all of them.
        journal: of the senders.
    """
    engine = create_engine(url, poolclass=NullPool, isolation_level="REPEATABLE READ")
    with engine.connect() as connection:
        return _Reading(connection, journal).books


class _Reading:
    def __init__(self, connection: Connection, journal: Journal) -> None:
        sent, acknowledged = journal.sent, journal.acknowledged
        self.books = Books(sent.total(), len(acknowledged), len(sent))
        self._events = {event.event_id: event for event in sent}
        self._ids: dict[str, int] = {}
        self._effects: dict[tuple[str, str], str] = {}
        for row in connection.execute(text(EFFECTS)):
            self._effects[row.event_id, row.handler] = row.outcome
            self.books.outcomes[row.handler, row.outcome] += 1
        self._entries = connection.execute(text(ENTRIES)).all()
        self._read_deliveries(connection)
        for event in acknowledged:
            if event.event_id not in self._ids:
                self.books.lost.append(f"{event.event_id} was acknowledged and is not in the ledger")
        self._check_entries()
        self._check_order()
        self._check_states(connection)

    def _read_deliveries(self, connection: Connection) -> None:
        books = self.books
        for row in connection.execute(text(DELIVERIES)):
            name = row.event_id
            books.recorded += 1
            if name in self._ids:
                books.doubled.append(f"{name} is in the ledger twice")
            self._ids[name] = row.id
            if name not in self._events:
                books.doubled.append(f"{name} is in the ledger and was never sent")
            elif row.body is None or bytes(row.body) != self._events[name].body:
                books.lost.append(f"{name} is in the ledger without its bytes")
            if row.pending:
                books.pending.append(name)
            if row.reason is not None:
                books.dead[name] = row.reason
            if row.pending and row.reason is not None:
                books.doubled.append(f"{name} is both pending and dead")
            elif not row.pending and row.reason is None:
                missing = [handler for handler in HANDLERS if (name, handler) not in self._effects]
                if missing:
                    books.lost.append(f"{name} is neither pending nor dead, and has no outcome of {missing}")

    def _check_entries(self) -> None:
        found = Counter((row.event_id, row.handler) for row in self._entries)
        for (name, handler), outcome in self._effects.items():
            if handler != ADD and outcome == APPLIED and not found[name, handler]:
                self.books.lost.append(f"{name} is applied by {handler}, and its row is not there")
            if outcome != APPLIED and not (handler == SAVE and outcome in REFUSED):
                self.books.lost.append(f"{name} is {outcome} by {handler}")
        for (name, handler), times in found.items():
            outcome = self._effects.get((name, handler), "without an outcome")
            allowed = int(outcome == APPLIED)
            if times > allowed:
                self.books.doubled.append(f"{name} is {outcome} by {handler}, and its row is there {times} times")

    def _check_order(self) -> None:
        """Rows of a resource are written under the lock of its state: their places are the order of their commits."""
        newest: dict[str, tuple[int, int]] = {}
        for row in self._entries:
            if row.handler != SAVE or row.event_id not in self._events:
                continue
            at = self._at(row.event_id)
            if at < newest.get(row.resource, at):
                self.books.moved_back.append(f"{row.resource}: {row.event_id} was applied after a newer one")
            newest[row.resource] = max(at, newest.get(row.resource, at))

    def _check_states(self, connection: Connection) -> None:
        added: Counter[str] = Counter()
        settled: defaultdict[str, list[str]] = defaultdict(list)
        for (name, handler), outcome in self._effects.items():
            event = self._events.get(name)
            if event is not None and handler == ADD and outcome == APPLIED:
                added[event.resource] += 1
            elif event is not None and handler == SAVE:
                settled[event.resource].append(name)
        rows = {(row.handler, row.resource): row for row in connection.execute(text(STATES))}
        for resource, count in added.items():
            row = rows.get((ADD, resource))
            found = 0 if row is None else json.loads(row.state, parse_float=Decimal)["n"]
            if found != count:
                told = self.books.lost if found < count else self.books.doubled
                told.append(f"{resource}: {count} were added, which makes {found}")
        for resource, names in settled.items():
            newest = max(names, key=self._at)
            row = rows.get((SAVE, resource))
            state = None if row is None or row.state is None else json.loads(row.state)["event"]
            if state != newest:
                self.books.moved_back.append(f"{resource} is at {state}, not at {newest}")

    def _at(self, name: str) -> tuple[int, int]:
        return self._events[name].version, self._ids.get(name, 0)
