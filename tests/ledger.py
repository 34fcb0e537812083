"""What a test sees of a ledger: its rows, read and written by hand, past the code that is tested."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.pool import NullPool


class Received(NamedTuple):
    """A delivery with the request that brought it."""

    id: int
    source: str
    event_id: str
    event_type: str
    resource: str | None
    version: list[Decimal] | None
    position: int
    body: bytes
    headers: list[tuple[str, str]]


class Again(NamedTuple):
    """A copy of a delivery; the body is only kept if it differs."""

    event_id: str
    differs: bool
    headers: list[tuple[str, str]]
    body: bytes | None


class Dead(NamedTuple):
    """A dead letter."""

    event_id: str
    reason: str
    error: str


class Ledger:
    """The ledger in a database, over a connection of its own for each look.

    Args:
        url: of the database.
        schema: of the ledger.
    """

    def __init__(self, url: str | URL, schema: str = "hookledger") -> None:
        self.url = make_url(url)
        quoted = schema.replace("%", "%%").replace('"', '""')
        self._engine = create_engine(url, poolclass=NullPool, execution_options={"isolation_level": "AUTOCOMMIT"})
        self._in_schema = f'SET search_path TO "{quoted}"'

    def run(self, statement: str, **parameters: Any) -> Sequence[Any]:
        """The rows that a statement gives, with the tables of the ledger in the search path."""
        with self._engine.connect() as connection:
            connection.exec_driver_sql(self._in_schema)
            result = connection.execute(text(statement), parameters)
            return result.all() if result.returns_rows else []

    def deliveries(self) -> list[Received]:
        """In the order of their ids."""
        rows = self.run(
            "SELECT d.id, source, event_id, event_type, resource, version, position, body, headers"
            " FROM deliveries d JOIN payloads p ON p.id = d.payload_id AND p.received_at = d.received_at ORDER BY d.id"
        )
        return [
            Received._make([*row[:7], bytes(row.body), [(name, value) for name, value in row.headers]]) for row in rows
        ]

    def delivery(self, event_id: str) -> Received:
        """The one delivery of an event."""
        (found,) = [delivery for delivery in self.deliveries() if delivery.event_id == event_id]
        return found

    def event_ids(self) -> list[str]:
        """Of all deliveries, in the order of their ids."""
        return [row.event_id for row in self.run("SELECT event_id FROM deliveries ORDER BY id")]

    def pending(self) -> list[str]:
        """The events that wait for a worker, in the order of their ids."""
        query = "SELECT event_id FROM pending JOIN deliveries ON id = delivery_id ORDER BY id"
        return [row.event_id for row in self.run(query)]

    def dead(self) -> list[Dead]:
        """In the order of their ids."""
        query = "SELECT event_id, reason, error FROM dead_letters JOIN deliveries ON id = delivery_id ORDER BY id"
        return [Dead(*row) for row in self.run(query)]

    def redeliveries(self) -> list[Again]:
        """In the order of their arrival."""
        rows = self.run(
            "SELECT event_id, differs, r.headers, body FROM redeliveries r JOIN deliveries d ON d.id = r.delivery_id"
            " LEFT JOIN payloads p ON p.id = r.payload_id ORDER BY r.id"
        )
        return [
            Again(row.event_id, row.differs, [(n, v) for n, v in row.headers], row.body and bytes(row.body))
            for row in rows
        ]

    def count(self, table: str) -> int:
        """The rows of a table."""
        return int(self.run(f"SELECT count(*) FROM {table}")[0][0])

    def consistent(self) -> bool:
        """Whether every delivery is in exactly one of pending, dead_letters or settled, and every row has a payload."""
        (row,) = self.run(
            "SELECT count(*) FROM deliveries d WHERE"
            " (SELECT count(*) FROM pending WHERE delivery_id = d.id)"
            " + (SELECT count(*) FROM dead_letters WHERE delivery_id = d.id)"
            " + (EXISTS (SELECT FROM effects e WHERE e.delivery_id = d.id))::int <> 1"
            " OR NOT EXISTS (SELECT FROM payloads p WHERE p.id = d.payload_id AND p.received_at = d.received_at)"
        )
        return int(row[0]) == 0

    def bury(self, event_id: str, reason: str = "failed") -> None:
        """Make a pending delivery a dead letter, as a worker does that gives up."""
        self.run(
            "WITH gone AS (DELETE FROM pending USING deliveries d WHERE d.id = delivery_id AND event_id = :event_id"
            " RETURNING delivery_id) INSERT INTO dead_letters (delivery_id, attempts, reason, error, fingerprint)"
            " SELECT delivery_id, 12, :reason, 'it never worked', 'f' FROM gone",
            event_id=event_id,
            reason=reason,
        )

    def settle(self, event_id: str) -> None:
        """Make a pending delivery a settled one, as a worker does that has applied it."""
        self.run(
            "WITH gone AS (DELETE FROM pending USING deliveries d WHERE d.id = delivery_id AND event_id = :event_id"
            " RETURNING d.id, source, event_id) INSERT INTO effects (source, event_id, handler, delivery_id, outcome)"
            " SELECT source, event_id, 'handler', id, 'applied' FROM gone",
            event_id=event_id,
        )
