"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic.operations import Operations
% if imports:
${imports}
% endif

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade(op: Operations, schema: str) -> None:
    ${upgrades.replace("schema='hookledger'", "schema=schema") if upgrades else "pass"}


def downgrade(op: Operations, schema: str) -> None:
    ${downgrades.replace("schema='hookledger'", "schema=schema") if downgrades else "pass"}
