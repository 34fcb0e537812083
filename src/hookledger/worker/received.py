"""From the rows of a claim to deliveries as handlers see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from hookledger.delivery import Delivery
from hookledger.errors import UnreadableBody
from hookledger.inbox import Inbox
from hookledger.ledger.arrays import version_of
from hookledger.ledger.rows import ClaimedRow
from hookledger.worker.outcome import Claimed
from hookledger.worker.pauses import pauses_of

LARGEST_READ = 32 * 1024 * 1024
"""Bytes of large bodies that one claim reads. A single one may be larger."""
NONE: frozenset[str] = frozenset()


def large_bodies(rows: Sequence[ClaimedRow]) -> list[tuple[datetime, int]]:
    """The payloads (received_at, id) whose large bodies are read for these rows: as many as there is room for."""
    wanted: dict[int, tuple[datetime, int]] = {}
    total = 0
    for row in sorted(rows, key=_arrival):
        if row.body is None and row.size is not None and row.payload_id not in wanted:
            total += row.size
            if wanted and total > LARGEST_READ:
                break
            wanted[row.payload_id] = (row.received_at, row.payload_id)
    return list(wanted.values())


class Received:
    """The rows of one claim, with the payloads that they share.

    Args:
        inbox: the handlers and sources.
        rows: of the claim.
        large: the bodies of `large_bodies`, by the id of their payload.
    """

    def __init__(self, inbox: Inbox, rows: Sequence[ClaimedRow], large: Mapping[int, bytes]) -> None:
        self._inbox = inbox
        self._large = large
        self._pauses = pauses_of(rows)
        in_order = sorted(rows, key=_arrival)
        self.rows = [row for row in in_order if self._is_read(row)]
        """Those that can be worked on, in the order of their arrival."""
        self.unread = [row for row in in_order if not self._is_read(row)]
        """Those whose body there was no room for."""

    def claimed(self, row: ClaimedRow, attempts: int | None = None) -> Claimed:
        """The delivery of a row.

        Args:
            row: one of `rows`.
            attempts: if the row was charged once more since.
        """
        source = self._inbox.sources.get(row.source)
        attempts = row.attempts if attempts is None else attempts
        body = self._large.get(row.payload_id, b"") if row.body is None else row.body
        delivery = Delivery(
            id=row.id,
            source=row.source,
            event_id=row.event_id,
            event_type=row.event_type,
            resource=row.resource,
            version=None if row.version is None else version_of(row.version),
            received_at=row.received_at,
            position=row.position,
            attempt=attempts,
            body=body,
            headers_json=row.headers or "[]",
            read_document=_unknown_document if source is None else source.document,
            is_deleted=_not_deleted if source is None else source.deleted,
        )
        handlers = self._inbox.handlers_for(row.source, row.event_type)
        paused = NONE
        if self._pauses.handlers:
            paused = frozenset([name for handler in handlers for name in self._pauses.of(handler)])
            handlers = tuple([handler for handler in handlers if not self._pauses.of(handler)])
        # One that was erased has nothing left, not even headers; no sender's request is like that.
        has_payload = row.size is not None and (row.size > 0 or row.headers != "[]")
        return Claimed(
            delivery, attempts, row.last_error, handlers, has_payload, row.revisited, row.version or "", paused
        )

    def _is_read(self, row: ClaimedRow) -> bool:
        return row.body is not None or row.size is None or row.payload_id in self._large


def fresh(claimed: Claimed) -> Claimed:
    """The same, without the document that handlers were given before and may have changed."""
    return claimed._replace(delivery=replace(claimed.delivery))


def _arrival(row: ClaimedRow) -> int:
    return row.id


def _unknown_document(delivery: Delivery) -> Any:
    raise UnreadableBody(f"the inbox has no source {delivery.source!r} that could read this delivery")


def _not_deleted(delivery: Delivery) -> bool:
    return False
