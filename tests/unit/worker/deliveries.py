"""Deliveries for the pure parts of the worker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from hookledger import Delivery
from hookledger.handlers import Handler, Kind
from hookledger.version import Version
from hookledger.worker.outcome import Claimed, Snapshot

RECEIVED = datetime(2025, 4, 30, 10, 0, tzinfo=UTC)


def handler(name: str = "save", kind: Kind = Kind.SNAPSHOT, **options: Any) -> Handler:
    """A handler that is never called."""
    return Handler(name, kind, "shop", ("*",), lambda *_: None, Connection, is_async=False, **options)


def delivery(id: int = 1, *, resource: str | None = "r1", version: Version | None = (1,), **other: Any) -> Delivery:
    """A delivery of the shop."""
    fields: dict[str, Any] = {
        "source": "shop",
        "event_id": f"e{id}",
        "event_type": "thing.updated",
        "received_at": RECEIVED,
        "position": 0,
        "attempt": 1,
        "body": b"{}",
        "headers_json": "[]",
        "read_document": lambda _: {},
        "is_deleted": lambda _: False,
    }
    return Delivery(id=id, resource=resource, version=version, **{**fields, **other})


def claimed(given: Delivery | None = None, *, attempts: int = 1) -> Claimed:
    """A claimed delivery."""
    return Claimed(given or delivery(), attempts, None, (handler(),))


def snapshot(id: int, version: Version, *, deleted: bool = False, handled_by: Handler | None = None) -> Snapshot:
    """A snapshot of the resource r1."""
    given = claimed(delivery(id, version=version))
    return Snapshot.of(given, handled_by or handler(), "r1", version, deleted=deleted)
