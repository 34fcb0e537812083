"""The tables of a ledger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic.operations import Operations
from sqlalchemy.dialects.postgresql import JSONB

revision = "hookledger_0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
VERSION = sa.ARRAY(sa.Numeric, dimensions=1)


def identity() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger, sa.Identity(always=False), nullable=False)


def text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, autoincrement=False, nullable=nullable)


def moment(name: str, *, default: bool = False) -> sa.Column[object]:
    return sa.Column(name, MOMENT, nullable=False, server_default=sa.func.now() if default else None)


def upgrade(op: Operations, schema: str) -> None:
    op.create_table(
        "payloads",
        identity(),
        moment("received_at", default=True),
        sa.Column("headers", JSONB, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("received_at", "id", name="payloads_pkey"),
        schema=schema,
        postgresql_partition_by="RANGE (received_at)",
    )
    quoted = '"' + schema.replace('"', '""') + '"'
    partition = "CREATE TABLE %(schema)s.payloads_default PARTITION OF %(schema)s.payloads DEFAULT"
    op.execute(sa.DDL(partition, context={"schema": quoted}))  # type: ignore[no-untyped-call]
    op.create_table(
        "deliveries",
        identity(),
        text("source"),
        text("event_id"),
        text("event_type"),
        text("resource", nullable=True),
        sa.Column("version", VERSION),
        number("payload_id"),
        moment("received_at"),
        sa.Column("position", sa.Integer, nullable=False, server_default="0"),
        sa.Column("body_digest", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="deliveries_pkey"),
        sa.UniqueConstraint("source", "event_id", name="deliveries_source_event_id_key"),
        schema=schema,
    )
    op.create_table(
        "redeliveries",
        identity(),
        number("delivery_id"),
        moment("received_at"),
        sa.Column("headers", JSONB, nullable=False),
        sa.Column("differs", sa.Boolean, nullable=False),
        number("payload_id", nullable=True),
        sa.PrimaryKeyConstraint("id", name="redeliveries_pkey"),
        schema=schema,
    )
    op.create_index("redeliveries_delivery_id_idx", "redeliveries", ["delivery_id"], schema=schema)
    op.create_table(
        "pending",
        number("delivery_id"),
        moment("due_at", default=True),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        text("last_error", nullable=True),
        sa.Column("revisited", sa.Boolean, nullable=False, server_default="false"),
        sa.PrimaryKeyConstraint("delivery_id", name="pending_pkey"),
        schema=schema,
        # Every row is updated once or more and then deleted: room for new versions in the same page, and a
        # vacuum that comes often and does not dawdle, else the claim reads ever more dead rows.
        postgresql_with={
            "fillfactor": 70,
            "autovacuum_vacuum_scale_factor": 0.02,
            "autovacuum_vacuum_threshold": 1000,
            "autovacuum_vacuum_cost_delay": 0,
        },
    )
    op.create_index("pending_due_at_delivery_id_idx", "pending", ["due_at", "delivery_id"], schema=schema)
    op.create_table(
        "dead_letters",
        number("delivery_id"),
        moment("died_at", default=True),
        sa.Column("attempts", sa.Integer, nullable=False),
        text("reason"),
        text("error"),
        text("fingerprint"),
        sa.PrimaryKeyConstraint("delivery_id", name="dead_letters_pkey"),
        schema=schema,
    )
    op.create_index("dead_letters_died_at_idx", "dead_letters", ["died_at", "delivery_id"], schema=schema)
    op.create_index("dead_letters_fingerprint_idx", "dead_letters", ["reason", "fingerprint"], schema=schema)
    op.create_table(
        "failures",
        identity(),
        number("delivery_id"),
        sa.Column("attempt", sa.Integer, nullable=False),
        moment("at", default=True),
        text("handler"),
        text("error"),
        text("fingerprint"),
        sa.PrimaryKeyConstraint("id", name="failures_pkey"),
        schema=schema,
    )
    op.create_index("failures_delivery_id_idx", "failures", ["delivery_id", "attempt"], schema=schema)
    op.create_table(
        "effects",
        text("source"),
        text("event_id"),
        text("handler"),
        number("delivery_id"),
        text("outcome"),
        sa.Column("version", VERSION),
        moment("applied_at", default=True),
        sa.PrimaryKeyConstraint("source", "event_id", "handler", name="effects_pkey"),
        schema=schema,
    )
    op.create_table(
        "resource_state",
        text("handler"),
        text("source"),
        text("resource"),
        sa.Column("version", VERSION),
        number("delivery_id", nullable=True),
        sa.Column("deleted", sa.Boolean, nullable=False, server_default="false"),
        sa.Column("state", JSONB),
        sa.PrimaryKeyConstraint("handler", "source", "resource", name="resource_state_pkey"),
        schema=schema,
        postgresql_with={"fillfactor": 70},
    )


def downgrade(op: Operations, schema: str) -> None:
    for name in (
        "resource_state",
        "effects",
        "failures",
        "dead_letters",
        "pending",
        "redeliveries",
        "deliveries",
        "payloads",
    ):
        op.drop_table(name, schema=schema)
