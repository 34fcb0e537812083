"""The tables of the person on call, and the indexes by which deliveries are found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic.operations import Operations
from sqlalchemy.dialects.postgresql import JSONB

revision = "hookledger_0002"
down_revision = "hookledger_0001"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def identity() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger, sa.Identity(always=False), nullable=False)


def text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def number(name: str, *, nullable: bool = False, default: str | None = None) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, autoincrement=False, nullable=nullable, server_default=default)


def moment(name: str) -> sa.Column[object]:
    return sa.Column(name, MOMENT, nullable=False, server_default=sa.func.now())


def upgrade(op: Operations, schema: str) -> None:
    op.create_table(
        "replays",
        identity(),
        text("kind"),
        text("who"),
        text("reason", nullable=True),
        sa.Column("filter", JSONB, nullable=False),
        sa.Column("plan", JSONB, nullable=False),
        moment("started_at"),
        sa.Column("finished_at", MOMENT),
        text("state"),
        number("until_id"),
        number("cursor_id", nullable=True),
        number("queued", default="0"),
        sa.Column("result", JSONB),
        sa.PrimaryKeyConstraint("id", name="replays_pkey"),
        schema=schema,
    )
    op.create_table(
        "replayed",
        number("replay_id"),
        number("delivery_id"),
        sa.PrimaryKeyConstraint("replay_id", "delivery_id", name="replayed_pkey"),
        schema=schema,
    )
    op.create_index("replayed_delivery_id_idx", "replayed", ["delivery_id"], schema=schema)
    op.create_table(
        "quarantine",
        identity(),
        moment("at"),
        text("source"),
        sa.Column("status", sa.Integer, nullable=False),
        text("reason"),
        text("diagnosis", nullable=True),
        text("method"),
        text("url"),
        sa.Column("headers", JSONB, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        number("size"),
        sa.Column("released_at", MOMENT),
        sa.Column("delivery_ids", sa.ARRAY(sa.BigInteger, dimensions=1)),
        sa.PrimaryKeyConstraint("id", name="quarantine_pkey"),
        schema=schema,
    )
    op.create_index("quarantine_at_idx", "quarantine", ["at"], schema=schema)
    op.create_index("quarantine_source_at_idx", "quarantine", ["source", "at"], schema=schema)
    op.create_table(
        "pauses",
        text("kind"),
        text("name"),
        moment("since"),
        text("who"),
        text("reason", nullable=True),
        sa.PrimaryKeyConstraint("kind", "name", name="pauses_pkey"),
        schema=schema,
    )
    op.create_table(
        "imported",
        number("delivery_id"),
        moment("imported_at"),
        text("origin"),
        sa.PrimaryKeyConstraint("delivery_id", name="imported_pkey"),
        schema=schema,
    )
    op.create_table(
        "erased",
        number("delivery_id"),
        moment("erased_at"),
        text("who"),
        sa.PrimaryKeyConstraint("delivery_id", name="erased_pkey"),
        schema=schema,
    )
    op.drop_index("dead_letters_fingerprint_idx", "dead_letters", schema=schema)
    op.create_index(
        "dead_letters_fingerprint_idx",
        "dead_letters",
        ["reason", "fingerprint", "died_at", "delivery_id"],
        schema=schema,
    )
    op.add_column("pending", sa.Column("parked", sa.Boolean, nullable=False, server_default="false"), schema=schema)
    op.create_index(
        "deliveries_resource_idx",
        "deliveries",
        ["resource", "source", "id"],
        schema=schema,
        postgresql_where=sa.text("resource IS NOT NULL"),
    )
    op.create_index("deliveries_received_at_idx", "deliveries", ["received_at"], schema=schema, postgresql_using="brin")
    op.create_index("effects_applied_at_idx", "effects", ["applied_at"], schema=schema, postgresql_using="brin")
    op.create_index(
        "effects_outcome_idx",
        "effects",
        ["outcome", "delivery_id"],
        schema=schema,
        postgresql_where=sa.text("outcome <> 'applied'"),
    )
    op.create_index("failures_fingerprint_idx", "failures", ["fingerprint", "delivery_id"], schema=schema)


def downgrade(op: Operations, schema: str) -> None:
    op.drop_index("failures_fingerprint_idx", "failures", schema=schema)
    op.drop_index("effects_outcome_idx", "effects", schema=schema)
    op.drop_index("effects_applied_at_idx", "effects", schema=schema)
    op.drop_index("deliveries_received_at_idx", "deliveries", schema=schema)
    op.drop_index("deliveries_resource_idx", "deliveries", schema=schema)
    op.drop_index("dead_letters_fingerprint_idx", "dead_letters", schema=schema)
    op.create_index("dead_letters_fingerprint_idx", "dead_letters", ["reason", "fingerprint"], schema=schema)
    op.drop_column("pending", "parked", schema=schema)
    for name in ("erased", "imported", "pauses", "quarantine", "replayed", "replays"):
        op.drop_table(name, schema=schema)
