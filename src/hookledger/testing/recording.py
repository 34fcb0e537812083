"""Recording deliveries as a receiver does, and reading which of them are tied."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Connection, Engine, text

from hookledger.handlers import Kind
from hookledger.inbox import Inbox
from hookledger.ledger.repository import Repository
from hookledger.receive.accept import Accepted
from hookledger.receive.batch import again, gathered
from hookledger.receive.line import Entry
from hookledger.receive.waiter import ThreadWaiter
from hookledger.testing.given import Given
from hookledger.worker.outcome import Snapshot
from hookledger.worker.read import read_snapshot
from hookledger.worker.received import Received, large_bodies

APART = timedelta(days=1, hours=5, minutes=7)
MANY = 100_000

_LATER = (
    """
    UPDATE {schema}.payloads SET received_at = received_at + :later
    WHERE id IN (SELECT payload_id FROM {schema}.deliveries WHERE id = ANY(:ids))
    """,
    "UPDATE {schema}.deliveries SET received_at = received_at + :later WHERE id = ANY(:ids)",
)


class Recorder:
    """Records in a ledger.

    Args:
        engine: of its database.
        schema: of its tables.
    """

    def __init__(self, engine: Engine, schema: str) -> None:
        self._engine = engine
        self._repository = Repository.of(schema)
        quoted = '"' + schema.replace('"', '""').replace(":", r"\:") + '"'
        self._later = [text(statement.format(schema=quoted)) for statement in _LATER]

    def record(self, requests: Sequence[Accepted], days_apart_from: int | None = None) -> None:
        """Record requests, one after the other, new or repeated.

        Args:
            requests: that have verified.
            days_apart_from: how many came before them, if a day and some hours are to lie between arrivals.
        """
        for position, accepted in enumerate(requests):
            later = None if days_apart_from is None else APART * (days_apart_from + position + 1)
            with self._engine.begin() as connection:
                self._record(connection, accepted, later)

    def tied(self, inbox: Inbox, given: Sequence[Given]) -> list[frozenset[int]]:
        """Which deliveries are tied: snapshots of one resource, for one handler, with one version. The ledger must be
        empty, and is again at the end.

        Args:
            inbox: the handlers.
            given: the deliveries.
        """
        numbers = {(new.source, new.event_id): one.number for one in given for new in one.accepted.events}
        with self._engine.connect() as connection:
            for position, one in enumerate(given):
                # Apart, since a handler's version may be the time of arrival, which is no tie.
                self._record(connection, one.accepted, APART * (position + 1))
            rows = self._repository.claim(connection, MANY, inbox.retry)
            wanted = large_bodies(rows)
            received = Received(inbox, rows, self._repository.read_bodies(connection, wanted) if wanted else {})
            connection.rollback()
        alike: dict[object, set[int]] = {}
        for row in received.rows:
            claimed = received.claimed(row)
            for handler in claimed.handlers:
                if handler.kind is Kind.SNAPSHOT:
                    try:
                        snapshot: Snapshot = read_snapshot(claimed, handler)
                    except Exception:  # noqa: S112
                        # It fails in each sequence just as well.
                        continue
                    key = (snapshot.state_key, snapshot.version)
                    alike.setdefault(key, set()).add(numbers[row.source, row.event_id])
        return _joined([group for group in alike.values() if len(group) > 1])

    def _record(self, connection: Connection, accepted: Accepted, later: timedelta | None) -> None:
        batch = gathered([Entry(accepted, ThreadWaiter())])
        new = batch.record(connection, self._repository)
        again(connection, self._repository, batch.copies(new))
        if later is not None and new:
            for statement in self._later:
                connection.execute(statement, {"later": later, "ids": list(new.values())})


def _joined(groups: Sequence[set[int]]) -> list[frozenset[int]]:
    """The groups, with those joined that have a member in common."""
    found: list[set[int]] = []
    for group in groups:
        apart = [other for other in found if not other & group]
        found = [*apart, group.union(*[other for other in found if other & group])]
    return [frozenset(group) for group in found]
