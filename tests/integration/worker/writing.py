"""What handlers of the tests do: they write a row for each event they are given."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import Connection, text

from hookledger import Delivery
from tests.outcomes import Ledger

_WRITE = text("INSERT INTO written (event_id, handler, note) VALUES (:event, :handler, :note)")


def write(delivery: Delivery, tx: Connection, handler: str = "write", note: str | None = None) -> None:
    """Write a row; one that is there twice was applied twice."""
    tx.execute(_WRITE, {"event": delivery.event_id, "handler": handler, "note": note})


def written(ledger: Ledger, handler: str = "write") -> Counter[str]:
    """How often each event was written."""
    rows = ledger.execute("SELECT event_id FROM written WHERE handler = :handler", handler=handler)
    return Counter(row.event_id for row in rows)
