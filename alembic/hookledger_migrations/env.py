"""Alembic's way in: `alembic upgrade head` with DATABASE_URL set, or a connection in `config.attributes`.

The schema is that of `config.attributes["schema"]`, else of HOOKLEDGER_SCHEMA, else of `hookledger_schema` in
the ini file, else "hookledger". Nothing is done to logging, and no URL goes through Alembic's configuration.
"""

from __future__ import annotations

import os
from typing import Any

from alembic import context
from alembic.operations import Operations
from alembic.util import CommandError
from sqlalchemy import Connection

from hookledger import engine as engines
from hookledger import migrate
from hookledger.errors import SetupError
from hookledger.inbox import DEFAULT_SCHEMA
from hookledger.ledger.prepare import prepare
from hookledger.ledger.schema import tables


def chosen_schema() -> str:
    given = context.config.attributes.get("schema") or os.environ.get("HOOKLEDGER_SCHEMA")
    return str(given or context.config.get_alembic_option("hookledger_schema") or DEFAULT_SCHEMA)


def is_migration() -> bool:
    """Whether the command changes the ledger: upgrade, downgrade and stamp go somewhere, the rest only look."""
    try:
        context.get_revision_argument()
    except KeyError:
        return False
    return True


def number_revision(_: Any, __: Any, directives: list[Any]) -> None:
    """Name a new revision after the number that comes next."""
    directives[0].rev_id = f"hookledger_{len(migrate.revisions()) + 1:04d}"


def write(schema: str) -> None:
    context.configure(
        dialect_name="postgresql",
        dialect_opts={"paramstyle": "named"},
        literal_binds=True,
        **migrate.options(schema),
    )
    migrate.write_offline(context.get_context(), schema, context.run_migrations)


def run(connection: Connection, schema: str) -> None:
    changing = is_migration()
    if changing:
        prepare(connection, schema)
    context.configure(
        connection=connection,
        target_metadata=tables(schema).metadata,
        process_revision_directives=number_revision,
        dont_mutate=not changing,
        **migrate.options(schema, connection.dialect.default_schema_name),
    )
    context.run_migrations(op=Operations(context.get_context()), schema=schema)


def connect_and_run(schema: str) -> None:
    try:
        engine = engines.create(pool_size=1)
        try:
            with engines.connect(engine) as connection, connection.begin():
                run(connection, schema)
        finally:
            engine.dispose()
    except SetupError as error:
        # The alembic command shows this kind of error in one line.
        raise CommandError(str(error)) from error


if context.is_offline_mode():
    write(chosen_schema())
elif "connection" in context.config.attributes:
    run(context.config.attributes["connection"], chosen_schema())
else:
    connect_and_run(chosen_schema())
