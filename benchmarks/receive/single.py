"""What the rivals write at receipt: the same rows as hookledger's, in one statement and one commit a request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.drain.plain import TABLES as TABLES

RECORD = """
    WITH delivery AS (
        INSERT INTO deliveries (source, event_id, event_type, resource, version, payload_id, received_at)
        VALUES ('benchmark', %(event_id)s, %(event_type)s, %(resource)s, %(version)s::numeric,
            nextval('payloads_id_seq'), now())
        ON CONFLICT DO NOTHING RETURNING id, payload_id, received_at
    ), payload AS (
        INSERT INTO payloads (id, received_at, headers, body)
        SELECT payload_id, received_at, %(headers)s::jsonb, %(body)s::bytea FROM delivery
    )
    INSERT INTO pending (delivery_id) SELECT id FROM delivery
"""

RECORD_MANY = """
    WITH event AS (
        SELECT *, nextval('payloads_id_seq') AS payload_id FROM unnest(
            %(event_id)s::text[], %(event_type)s::text[], %(resource)s::text[], %(version)s::numeric[],
            %(headers)s::text[], %(body)b::bytea[]
        ) AS event (event_id, event_type, resource, version, headers, body)
    ), delivery AS (
        INSERT INTO deliveries (source, event_id, event_type, resource, version, payload_id, received_at)
        SELECT 'benchmark', event_id, event_type, resource, version, payload_id, now() FROM event
        ON CONFLICT DO NOTHING RETURNING id, payload_id, received_at
    ), payload AS (
        INSERT INTO payloads (id, received_at, headers, body)
        SELECT payload_id, received_at, headers::jsonb, body FROM delivery JOIN event USING (payload_id)
    )
    INSERT INTO pending (delivery_id) SELECT id FROM delivery
"""
"""The same for several requests."""


def together(requests: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """What RECORD_MANY needs: a list for each of the `parameters` of those requests."""
    return {name: [request[name] for request in requests] for name in requests[0]}


def parameters(headers: Iterable[tuple[str, str]], body: bytes) -> dict[str, Any]:
    """What RECORD needs, of a verified request."""
    event = json.loads(body)
    return {
        "event_id": event["id"],
        "event_type": event["type"],
        "resource": event["data"]["object"]["id"],
        "version": event["version"],
        "headers": json.dumps(list(headers)),
        "body": body,
    }
