"""A ledger as a test sees it: deliveries recorded the way a receiver records them, and what became of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from hookledger import Inbox, RetryPolicy, Source, hmac_source
from hookledger.http import Request
from hookledger.ledger.failure import is_rerouted
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import NewEvent, NewRequest
from hookledger.receive.accept import Accepted, accept
from hookledger.worker.raised import without_place

SHOP = "shop"
DAY = 86_400


def shop(name: str = SHOP) -> Source:
    """A sender whose documents have id, type, resource and version."""
    return hmac_source(name, header="X-Sig", secrets="k-test-1", resource="resource", version="version")


def inbox_of_shop(*, schema: str = "hookledger", **retry: Any) -> Inbox:
    """An inbox with that sender, and a retry policy of the given values."""
    return Inbox(shop(), retry=RetryPolicy(**retry), schema=schema)


def document(
    id: str, resource: str | None = None, version: Any = None, type: str = "thing.updated", **more: Any
) -> Any:
    """An event of the shop."""
    return {"id": id, "type": type, "resource": resource, "version": version, **more}


class Pending(NamedTuple):
    """A row of pending."""

    attempts: int
    due_in: float
    last_error: str | None


class Dead(NamedTuple):
    """A dead letter."""

    reason: str
    error: str
    attempts: int


class Failed(NamedTuple):
    """A row of failures."""

    event_id: str
    attempt: int
    handler: str
    error: str


class State(NamedTuple):
    """A row of resource_state, the version as numbers and the state as Python reads it."""

    version: tuple[Decimal, ...] | None
    deleted: bool
    state: Any


class Ledger:
    """A ledger to record into and to look at, over connections of its own.

    Args:
        database_url: of its database.
        schema: of its tables.
    """

    def __init__(self, database_url: str, schema: str = "hookledger") -> None:
        self.engine: Engine = create_engine(database_url, poolclass=NullPool)
        self.schema = schema
        self._repository = Repository.of(schema)
        quoted = '"' + schema.replace('"', '""') + '"'
        self._tables = {"hookledger.": f"{quoted}."}

    def record(self, *documents: Any, source: Source | None = None) -> list[int]:
        """Record each document, or raw bytes, as a request of its own; the ids of the deliveries in that order."""
        source = source or shop()
        accepted: list[Accepted] = []
        for given in documents:
            body = given if isinstance(given, bytes) else json.dumps(given).encode()
            assert source.sign is not None
            now = time.time()
            taken = accept(source, Request(source.name, "POST", source.sign(body, now), body), now, 1 << 20)
            assert isinstance(taken, Accepted)
            accepted.append(taken)
        requests = [NewRequest(one.headers, one.body) for one in accepted]
        events = [event._replace(request=number) for number, one in enumerate(accepted, 1) for event in one.events]
        try:
            found = self._record(requests, events)
        except DBAPIError as error:
            # A worker of the test may be making this week's partition just now.
            if not is_rerouted(error):
                raise
            found = self._record(requests, events)
        return [found[index] for index in sorted(found)]

    def _record(self, requests: list[NewRequest], events: list[NewEvent]) -> dict[int, int]:
        with self.engine.begin() as connection:
            return self._repository.record(connection, requests, events)

    def execute(self, statement: str, **parameters: Any) -> Sequence[Any]:
        """Run a statement, in which `hookledger.` stands for our schema, and commit; its rows."""
        for written, meant in self._tables.items():
            statement = statement.replace(written, meant)
        with self.engine.begin() as connection:
            result = connection.execute(text(statement), parameters)
            return result.all() if result.returns_rows else []

    def value(self, statement: str, **parameters: Any) -> Any:
        """The first value that a statement gives."""
        rows = self.execute(statement, **parameters)
        return rows[0][0] if rows else None

    def outcomes(self) -> dict[tuple[str, str], str]:
        """The outcome of each (event, handler)."""
        rows = self.execute("SELECT event_id, handler, outcome FROM hookledger.effects")
        return {(row.event_id, row.handler): row.outcome for row in rows}

    def outcomes_of(self, handler: str) -> dict[str, str]:
        """The outcome of each event for one handler."""
        return {event: outcome for (event, name), outcome in self.outcomes().items() if name == handler}

    def pending(self) -> dict[str, Pending]:
        """The rows of pending by event, their errors without the place."""
        rows = self.execute(
            "SELECT event_id, attempts, extract(epoch FROM due_at - clock_timestamp())::float, last_error "
            "FROM hookledger.pending JOIN hookledger.deliveries ON id = delivery_id"
        )
        return {row[0]: Pending(*row[1:3], row.last_error and without_place(row.last_error)) for row in rows}

    def dead(self) -> dict[str, Dead]:
        """The dead letters by event, their errors without the place."""
        rows = self.execute(
            "SELECT event_id, reason, error, attempts "
            "FROM hookledger.dead_letters JOIN hookledger.deliveries ON id = delivery_id"
        )
        return {row[0]: Dead(row.reason, without_place(row.error), row.attempts) for row in rows}

    def failures(self) -> list[Failed]:
        """What is recorded of failed attempts, in that order, without the place."""
        rows = self.execute(
            "SELECT event_id, attempt, handler, error "
            "FROM hookledger.failures AS f JOIN hookledger.deliveries AS d ON d.id = f.delivery_id ORDER BY f.id"
        )
        return [Failed(*row[:3], without_place(row.error)) for row in rows]

    def states(self, handler: str | None = None) -> dict[str, State]:
        """The states by resource, of one handler or of all."""
        rows = self.execute(
            "SELECT resource, version, deleted, state::text AS state FROM hookledger.resource_state "
            "WHERE handler LIKE :handler",
            handler=handler or "%",
        )
        return {
            row.resource: State(
                None if row.version is None else tuple(row.version),
                row.deleted,
                None if row.state is None else json.loads(row.state, parse_float=Decimal, parse_int=Decimal),
            )
            for row in rows
        }

    def make_due(self) -> None:
        """Let all that is pending be due now, as if its time had come."""
        self.execute("UPDATE hookledger.pending SET due_at = now()")

    def check(self) -> None:
        """See that every delivery is in exactly one of pending, dead letters and settled.

        One that was given up or waits may have outcomes of handlers that succeeded, but whatever is settled has one.
        """
        lost = self.execute(
            """
            SELECT id FROM hookledger.deliveries AS d WHERE (
                EXISTS (SELECT FROM hookledger.pending AS p WHERE p.delivery_id = d.id)::int
                + EXISTS (SELECT FROM hookledger.dead_letters AS l WHERE l.delivery_id = d.id)::int > 1
            ) OR NOT (
                EXISTS (SELECT FROM hookledger.pending AS p WHERE p.delivery_id = d.id)
                OR EXISTS (SELECT FROM hookledger.dead_letters AS l WHERE l.delivery_id = d.id)
                OR EXISTS (SELECT FROM hookledger.effects AS e WHERE e.delivery_id = d.id)
            )
            """
        )
        assert lost == []

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection whose transaction is open, as that of another client; rolled back at the end."""
        with self.engine.connect() as connection:
            yield connection

    def now(self) -> datetime:
        """The database's time."""
        moment: datetime = self.value("SELECT clock_timestamp()")
        return moment
