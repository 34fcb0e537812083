"""The tables of a ledger. The migrations make them; this is what the statements are built from.

payloads, deliveries, redeliveries, failures and effects are only inserted into; pending is what moves. The last six are
those of the person on call: what was replayed, refused, paused, imported and erased.
Every id is bigint. There are no foreign keys: the rows that belong together are written by one statement, and
a foreign key would lock and rewrite ledger rows at every receipt.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

VERSION_TABLE = "schema_version"
"""Where Alembic keeps the revision of a ledger: a table of this name in the ledger's own schema."""

MOMENT = DateTime(timezone=True)
VERSION = ARRAY(Numeric, dimensions=1)


@dataclass(frozen=True)
class Tables:
    """The tables of the ledger in one schema."""

    schema: str
    metadata: MetaData
    payloads: Table
    deliveries: Table
    redeliveries: Table
    pending: Table
    dead_letters: Table
    failures: Table
    effects: Table
    resource_state: Table
    replays: Table
    replayed: Table
    quarantine: Table
    pauses: Table
    imported: Table
    erased: Table


def _moment(name: str, *, default: bool = False) -> Column[object]:
    return Column(name, MOMENT, nullable=False, server_default=func.now() if default else None)


@cache
def tables(schema: str) -> Tables:
    """The tables of the ledger in the given schema, built once a schema."""
    metadata = MetaData(schema=schema)
    payloads = Table(
        "payloads",
        metadata,
        Column("id", BigInteger, Identity(always=False), nullable=False),
        _moment("received_at", default=True),
        Column("headers", JSONB, nullable=False),
        Column("body", LargeBinary, nullable=False),
        PrimaryKeyConstraint("received_at", "id", name="payloads_pkey"),
        postgresql_partition_by="RANGE (received_at)",
    )
    deliveries = Table(
        "deliveries",
        metadata,
        Column("id", BigInteger, Identity(always=False), nullable=False),
        Column("source", Text, nullable=False),
        Column("event_id", Text, nullable=False),
        Column("event_type", Text, nullable=False),
        Column("resource", Text),
        Column("version", VERSION),
        Column("payload_id", BigInteger, nullable=False),
        _moment("received_at"),
        Column("position", Integer, nullable=False, server_default="0"),
        Column("body_digest", LargeBinary, nullable=False),
        PrimaryKeyConstraint("id", name="deliveries_pkey"),
        UniqueConstraint("source", "event_id", name="deliveries_source_event_id_key"),
        Index("deliveries_resource_idx", "resource", "source", "id", postgresql_where=text("resource IS NOT NULL")),
        # Rows lie nearly in the order of this time, so a few bytes for a hundred pages find an hour among years.
        Index("deliveries_received_at_idx", "received_at", postgresql_using="brin"),
    )
    redeliveries = Table(
        "redeliveries",
        metadata,
        Column("id", BigInteger, Identity(always=False), nullable=False),
        Column("delivery_id", BigInteger, nullable=False),
        _moment("received_at"),
        Column("headers", JSONB, nullable=False),
        Column("differs", Boolean, nullable=False),
        Column("payload_id", BigInteger),
        PrimaryKeyConstraint("id", name="redeliveries_pkey"),
        Index("redeliveries_delivery_id_idx", "delivery_id"),
    )
    pending = Table(
        "pending",
        metadata,
        Column("delivery_id", BigInteger, nullable=False, autoincrement=False),
        _moment("due_at", default=True),
        Column("attempts", Integer, nullable=False, server_default="0"),
        Column("last_error", Text),
        # False only until the first claim of what a receipt made pending: then there can be no effects to look up.
        Column("revisited", Boolean, nullable=False, server_default="false"),
        # Given back because its source or a handler of it is paused; the next claim clears it.
        Column("parked", Boolean, nullable=False, server_default="false"),
        PrimaryKeyConstraint("delivery_id", name="pending_pkey"),
        Index("pending_due_at_delivery_id_idx", "due_at", "delivery_id"),
    )
    dead_letters = Table(
        "dead_letters",
        metadata,
        Column("delivery_id", BigInteger, nullable=False, autoincrement=False),
        _moment("died_at", default=True),
        Column("attempts", Integer, nullable=False),
        Column("reason", Text, nullable=False),
        Column("error", Text, nullable=False),
        Column("fingerprint", Text, nullable=False),
        PrimaryKeyConstraint("delivery_id", name="dead_letters_pkey"),
        Index("dead_letters_died_at_idx", "died_at", "delivery_id"),
        # Groups, how many there are in each, and the first and last of it are read from the index alone.
        Index("dead_letters_fingerprint_idx", "reason", "fingerprint", "died_at", "delivery_id"),
    )
    failures = Table(
        "failures",
        metadata,
        Column("id", BigInteger, Identity(always=False), nullable=False),
        Column("delivery_id", BigInteger, nullable=False),
        Column("attempt", Integer, nullable=False),
        _moment("at", default=True),
        Column("handler", Text, nullable=False),
        Column("error", Text, nullable=False),
        Column("fingerprint", Text, nullable=False),
        PrimaryKeyConstraint("id", name="failures_pkey"),
        Index("failures_delivery_id_idx", "delivery_id", "attempt"),
        Index("failures_fingerprint_idx", "fingerprint", "delivery_id"),
    )
    effects = Table(
        "effects",
        metadata,
        Column("source", Text, nullable=False),
        Column("event_id", Text, nullable=False),
        Column("handler", Text, nullable=False),
        Column("delivery_id", BigInteger, nullable=False),
        Column("outcome", Text, nullable=False),
        Column("version", VERSION),
        _moment("applied_at", default=True),
        # The event comes first, so that one look into the index finds all outcomes of a delivery.
        PrimaryKeyConstraint("source", "event_id", "handler", name="effects_pkey"),
        Index("effects_applied_at_idx", "applied_at", postgresql_using="brin"),
        Index("effects_outcome_idx", "outcome", "delivery_id", postgresql_where=text("outcome <> 'applied'")),
    )
    resource_state = Table(
        "resource_state",
        metadata,
        Column("handler", Text, nullable=False),
        Column("source", Text, nullable=False),
        Column("resource", Text, nullable=False),
        Column("version", VERSION),
        Column("delivery_id", BigInteger),
        Column("deleted", Boolean, nullable=False, server_default="false"),
        Column("state", JSONB),
        PrimaryKeyConstraint("handler", "source", "resource", name="resource_state_pkey"),
    )
    replays = Table(
        "replays",
        metadata,
        Column("id", BigInteger, Identity(always=False), nullable=False),
        Column("kind", Text, nullable=False),
        Column("who", Text, nullable=False),
        Column("reason", Text),
        Column("filter", JSONB, nullable=False),
        Column("plan", JSONB, nullable=False),
        _moment("started_at", default=True),
        Column("finished_at", MOMENT),
        Column("state", Text, nullable=False),
        # Frozen by the plan: what arrives later is not in the replay.
        Column("until_id", BigInteger, nullable=False),
        Column("cursor_id", BigInteger),
        Column("queued", BigInteger, nullable=False, server_default="0"),
        Column("result", JSONB),
        PrimaryKeyConstraint("id", name="replays_pkey"),
    )
    replayed = Table(
        "replayed",
        metadata,
        Column("replay_id", BigInteger, nullable=False, autoincrement=False),
        Column("delivery_id", BigInteger, nullable=False, autoincrement=False),
        PrimaryKeyConstraint("replay_id", "delivery_id", name="replayed_pkey"),
        Index("replayed_delivery_id_idx", "delivery_id"),
    )
    quarantine = Table(
        "quarantine",
        metadata,
        Column("id", BigInteger, Identity(always=False), nullable=False),
        _moment("at", default=True),
        Column("source", Text, nullable=False),
        Column("status", Integer, nullable=False),
        Column("reason", Text, nullable=False),
        Column("diagnosis", Text),
        Column("method", Text, nullable=False),
        Column("url", Text, nullable=False),
        Column("headers", JSONB, nullable=False),
        Column("body", LargeBinary, nullable=False),
        # Of the request; the body may have been cut.
        Column("size", BigInteger, nullable=False),
        Column("released_at", MOMENT),
        Column("delivery_ids", ARRAY(BigInteger, dimensions=1)),
        PrimaryKeyConstraint("id", name="quarantine_pkey"),
        Index("quarantine_at_idx", "at"),
        Index("quarantine_source_at_idx", "source", "at"),
    )
    pauses = Table(
        "pauses",
        metadata,
        Column("kind", Text, nullable=False),
        Column("name", Text, nullable=False),
        _moment("since", default=True),
        Column("who", Text, nullable=False),
        Column("reason", Text),
        PrimaryKeyConstraint("kind", "name", name="pauses_pkey"),
    )
    imported = Table(
        "imported",
        metadata,
        Column("delivery_id", BigInteger, nullable=False, autoincrement=False),
        _moment("imported_at", default=True),
        Column("origin", Text, nullable=False),
        PrimaryKeyConstraint("delivery_id", name="imported_pkey"),
    )
    erased = Table(
        "erased",
        metadata,
        Column("delivery_id", BigInteger, nullable=False, autoincrement=False),
        _moment("erased_at", default=True),
        Column("who", Text, nullable=False),
        PrimaryKeyConstraint("delivery_id", name="erased_pkey"),
    )
    return Tables(
        schema,
        metadata,
        payloads,
        deliveries,
        redeliveries,
        pending,
        dead_letters,
        failures,
        effects,
        resource_state,
        replays,
        replayed,
        quarantine,
        pauses,
        imported,
        erased,
    )
