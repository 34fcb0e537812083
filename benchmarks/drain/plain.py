"""Plain psycopg: the statements that the work cannot do without, in batches, with nothing around them.

It knows one handler and one kind of event, has no failures, no retries, no isolation of a handler that fails, and
nobody stops it: what is between this and hookledger is what those cost.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg

from benchmarks.deliveries import BODY, EVENT_TYPE, SOURCE, body_parameters
from benchmarks.drain.contender import Job
from benchmarks.processes import timed
from benchmarks.report import Failed
from benchmarks.server import count

TABLES = """
    CREATE TABLE payloads (
        id bigint GENERATED ALWAYS AS IDENTITY, received_at timestamptz NOT NULL DEFAULT now(),
        headers jsonb NOT NULL, body bytea NOT NULL, PRIMARY KEY (received_at, id)
    ) PARTITION BY RANGE (received_at);
    CREATE TABLE payloads_default PARTITION OF payloads DEFAULT;
    CREATE TABLE deliveries (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, source text NOT NULL, event_id text NOT NULL,
        event_type text NOT NULL, resource text, version numeric, payload_id bigint NOT NULL,
        received_at timestamptz NOT NULL, position int NOT NULL DEFAULT 0, UNIQUE (source, event_id)
    );
    CREATE TABLE pending (
        delivery_id bigint PRIMARY KEY REFERENCES deliveries ON DELETE CASCADE,
        due_at timestamptz NOT NULL DEFAULT now(), attempts int NOT NULL DEFAULT 0, last_error text
    ) WITH (fillfactor = 70);
    CREATE INDEX ON pending (due_at, delivery_id);
    CREATE TABLE resource_state (
        handler text, source text, resource text, version numeric, delivery_id bigint, state jsonb,
        PRIMARY KEY (handler, source, resource)
    ) WITH (fillfactor = 70);
    CREATE TABLE effects (
        handler text, source text, event_id text, delivery_id bigint, outcome text,
        applied_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (handler, source, event_id)
    );
    CREATE TABLE mine (delivery_id bigint, note text);
"""
FILL = f"""
    WITH payload AS (
        INSERT INTO payloads (headers, body)
        SELECT '[["content-type", "application/json"]]', {BODY} FROM generate_series(1, %(deliveries)s) AS number
        RETURNING id, received_at
    )
    INSERT INTO deliveries (source, event_id, event_type, resource, version, payload_id, received_at)
    SELECT '{SOURCE}', 'evt_' || id, '{EVENT_TYPE}', 'cus_' || (id %% %(resources)s), id, id, received_at FROM payload
"""
CLAIM = """
    WITH due AS MATERIALIZED (
        SELECT delivery_id FROM pending WHERE due_at <= now() ORDER BY due_at, delivery_id
        LIMIT {batch} FOR UPDATE SKIP LOCKED
    ), claimed AS (
        UPDATE pending SET attempts = pending.attempts + 1, due_at = now() + interval '10 seconds'
        FROM due WHERE pending.delivery_id = due.delivery_id
        RETURNING pending.delivery_id, pending.attempts
    )
    SELECT d.id, d.source, d.event_id, d.event_type, d.resource, d.version, p.body, claimed.attempts, p.headers
    FROM claimed JOIN deliveries d ON d.id = claimed.delivery_id
    JOIN payloads p ON p.id = d.payload_id AND p.received_at = d.received_at
"""
HOLD = "SELECT delivery_id FROM pending WHERE delivery_id = ANY(%(ids)s) FOR UPDATE SKIP LOCKED"
WATERMARK = """
    INSERT INTO resource_state AS r (handler, source, resource, version, delivery_id)
    SELECT 'save_customer', s, k, v, i
    FROM unnest(%(sources)s::text[], %(resources)s::text[], %(versions)s::numeric[], %(ids)s::bigint[]) AS t (s, k, v, i)
    ORDER BY s, k
    ON CONFLICT (handler, source, resource) DO UPDATE
    SET version = excluded.version, delivery_id = excluded.delivery_id
    WHERE (r.version, r.delivery_id) < (excluded.version, excluded.delivery_id)
    RETURNING delivery_id
"""
EFFECTS = """
    INSERT INTO effects (handler, source, event_id, delivery_id, outcome)
    SELECT 'save_customer', s, e, i, 'applied'
    FROM unnest(%(sources)s::text[], %(events)s::text[], %(ids)s::bigint[]) AS t (s, e, i) ORDER BY s, e
    ON CONFLICT DO NOTHING RETURNING delivery_id
"""
SETTLE = "DELETE FROM pending WHERE delivery_id = ANY(%(ids)s)"
MINE = "INSERT INTO mine VALUES (%s, %s)"

Row = tuple[Any, ...]


def prepare(job: Job) -> None:
    """Make the tables and fill them."""
    with psycopg.connect(job.dsn) as connection:
        connection.execute(TABLES)
        parameters = body_parameters(job.body, job.resources)
        connection.execute(FILL, {**parameters, "deliveries": job.deliveries})
        connection.execute("INSERT INTO pending (delivery_id) SELECT id FROM deliveries")


def work(job: Job) -> dict[str, Any]:
    """Settle everything."""
    seconds = timed(drain, job.workers, job)
    settled = count(job.url, "SELECT count(*) FROM effects")
    pending = count(job.url, "SELECT count(*) FROM pending")
    if pending or settled != job.deliveries:
        raise Failed(f"of {job.deliveries} deliveries {settled} were settled and {pending} are pending")
    return {"seconds": seconds}


def drain(job: Job) -> None:
    """Work in this process until nothing is due."""
    # A constant in the text: with a parameter, a cached plan would reckon with a tenth of the table.
    claim = CLAIM.format(batch=job.batch).encode()
    with psycopg.connect(job.dsn) as connection:
        while True:
            connection.execute("SET LOCAL synchronous_commit = off")
            rows = connection.execute(claim).fetchall()
            connection.commit()
            if not rows:
                return
            _settle(connection, rows, insert=job.insert)
            connection.commit()


def _settle(connection: psycopg.Connection, rows: list[Row], *, insert: bool) -> None:
    ids = [row[0] for row in rows]
    connection.execute(HOLD, {"ids": ids}).fetchall()
    newest: dict[tuple[str, str], Row] = {}
    for row in rows:
        json.loads(row[6])
        key = (row[1], row[4])
        if key not in newest or (newest[key][5], newest[key][0]) < (row[5], row[0]):
            newest[key] = row
    best = list(newest.values())
    watermarks = {
        "sources": [row[1] for row in best],
        "resources": [row[4] for row in best],
        "versions": [row[5] for row in best],
        "ids": [row[0] for row in best],
    }
    connection.execute(WATERMARK, watermarks).fetchall()
    if insert:
        for row in rows:
            connection.execute("SAVEPOINT handler")
            connection.execute(MINE, (row[0], row[4]))
            connection.execute("RELEASE SAVEPOINT handler")
    effects = {"sources": [row[1] for row in rows], "events": [row[2] for row in rows], "ids": ids}
    connection.execute(EFFECTS, effects).fetchall()
    connection.execute(SETTLE, {"ids": ids})
