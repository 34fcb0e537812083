"""A ledger of hookledger with many rows, written past the receiver, and what a run has made of it."""

from __future__ import annotations

import psycopg

from benchmarks.database import dsn
from benchmarks.deliveries import BODY, EVENT_TYPE, SOURCE, body_parameters

HANDLER = "save_customer"
STEP = 100_000
"""Deliveries that one transaction writes."""

RECORD = f"""
    WITH payload AS (
        INSERT INTO hookledger.payloads (headers, body)
        SELECT '[["content-type", "application/json"]]'::jsonb, {BODY}
        FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS number
        RETURNING id, received_at
    )
    INSERT INTO hookledger.deliveries
        (source, event_id, event_type, resource, version, payload_id, received_at, body_digest)
    SELECT '{SOURCE}', 'evt_' || id, '{EVENT_TYPE}', 'cus_' || (id %% %(resources)s), ARRAY[id]::numeric[],
        id, received_at, sha256(convert_to('evt_' || id, 'UTF8'))
    FROM payload
"""
LAST_ID = "SELECT coalesce(max(id), 0) FROM hookledger.deliveries"
QUEUE = "INSERT INTO hookledger.pending (delivery_id) SELECT id FROM hookledger.deliveries WHERE id > %(after)s"
SETTLE = f"""
    INSERT INTO hookledger.effects (source, event_id, handler, delivery_id, outcome, version)
    SELECT source, event_id, '{HANDLER}', id, 'applied', version
    FROM hookledger.deliveries WHERE id > %(after)s
"""
WATERMARKS = f"""
    INSERT INTO hookledger.resource_state AS r (handler, source, resource, version, delivery_id)
    SELECT '{HANDLER}', source, resource, max(version), max(id)
    FROM hookledger.deliveries WHERE id > %(after)s GROUP BY source, resource
    ON CONFLICT (handler, source, resource) DO UPDATE
    SET version = excluded.version, delivery_id = excluded.delivery_id
"""
OUTCOMES = "SELECT outcome, count(*) FROM hookledger.effects WHERE delivery_id > %(after)s GROUP BY outcome"


def add_pending(url: str, deliveries: int, *, resources: int, body: int) -> int:
    """Add deliveries that wait for a worker.

    Args:
        url: of the database.
        deliveries: how many.
        resources: that they are about, one after the other.
        body: bytes of each payload.

    Returns:
        The highest id before.
    """
    return _add(url, deliveries, resources, body, (QUEUE,))


def add_settled(url: str, deliveries: int, *, resources: int, body: int) -> int:
    """Add deliveries that were applied. Arguments and result are those of `add_pending`."""
    return _add(url, deliveries, resources, body, (SETTLE, WATERMARKS))


def outcomes(url: str, after: int = 0) -> dict[str, int]:
    """How many effects there are of each outcome, of the deliveries after an id."""
    with psycopg.connect(dsn(url)) as connection:
        return dict(connection.execute(OUTCOMES, {"after": after}).fetchall())


def _add(url: str, deliveries: int, resources: int, body: int, then: tuple[str, ...]) -> int:
    parameters = body_parameters(body, resources)
    with psycopg.connect(dsn(url)) as connection:
        before = _last_id(connection)
        connection.commit()
        for first in range(before + 1, before + deliveries + 1, STEP):
            after = {"after": _last_id(connection)}
            last = min(first + STEP - 1, before + deliveries)
            connection.execute(RECORD, {**parameters, "first": first, "last": last})
            for statement in then:
                connection.execute(statement, after)
            connection.commit()
    return before


def _last_id(connection: psycopg.Connection) -> int:
    row = connection.execute(LAST_ID).fetchone()
    assert row is not None
    return int(row[0])
