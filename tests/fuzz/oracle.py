"""What must be so of an answer: no 500, and with a 2xx the events are committed with the exact bytes."""

from __future__ import annotations

import hashlib
import time

from hookledger.errors import Refused
from hookledger.http import Request, Response
from hookledger.receive.accept import Accepted, accept
from hookledger.receive.settings import IntakeSettings
from hookledger.sources import Source
from tests.ledger import Ledger

LIMIT = IntakeSettings().max_body_bytes


def expected(source: Source, request: Request) -> Accepted | Response | Refused:
    """What the request is, by the pure part of the receiver; it raises nothing else."""
    try:
        return accept(source, request, time.time(), LIMIT)
    except Refused as error:
        return error


def not_committed(ledger: Ledger, accepted: Accepted) -> list[str]:
    """The events of an acknowledged request that are not in the ledger with its bytes."""
    missing = []
    for event in accepted.events:
        rows = ledger.run(
            "SELECT p.body, d.body_digest FROM deliveries d"
            " JOIN payloads p ON p.id = d.payload_id AND p.received_at = d.received_at"
            " WHERE source = :source AND event_id = :event_id"
            " UNION ALL SELECT p.body, NULL FROM deliveries d JOIN redeliveries r ON r.delivery_id = d.id"
            " JOIN payloads p ON p.id = r.payload_id WHERE source = :source AND event_id = :event_id",
            source=event.source,
            event_id=event.event_id,
        )
        # A copy of a batch's item is the same as before when the item is, whatever stands beside it.
        is_item = event.digest != hashlib.sha256(accepted.body).digest()
        same = any(bytes(row[0]) == accepted.body or (is_item and row[1] == event.digest) for row in rows)
        if not same and not _has_body(ledger, accepted):
            missing.append(event.event_id)
    return missing


def _has_body(ledger: Ledger, accepted: Accepted) -> bool:
    """Whether the source has brought these bytes: some providers' events are told apart by when they were read."""
    return bool(
        ledger.run(
            "SELECT FROM deliveries d JOIN payloads p ON p.id = d.payload_id AND p.received_at = d.received_at"
            " WHERE source = :source AND body = :body",
            source=accepted.source.name,
            body=accepted.body,
        )
    )
