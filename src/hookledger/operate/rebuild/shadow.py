"""The shadow schema of a rebuild: a ledger of its own, and empty copies of the handler's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, func, select, text

from hookledger import migrate
from hookledger.errors import SetupError
from hookledger.handlers import Handler
from hookledger.inbox import Inbox
from hookledger.ledger.rights import quoted
from hookledger.ledger.schema import tables

_IS_LEDGER = text("SELECT to_regclass(format('%I.resource_state', CAST(:schema AS text))) IS NOT NULL")
_IS_THERE = text("SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = :schema)")
_WHERE = text("SELECT CAST(to_regclass(:name) AS text)")


@dataclass(frozen=True, slots=True)
class Shadow:
    """What a rebuild works on.

    Args:
        schema: the shadow's.
        live: the ledger's.
        inbox: with this one handler, for the ledger in the shadow.
        handler: it.
        until_id: the last delivery that is in it.
    """

    schema: str
    live: str
    inbox: Inbox
    handler: Handler
    until_id: int


def prepare(engine: Engine, inbox: Inbox, handler: str, schema: str, *, copy_tables: Sequence[str] = ()) -> Shadow:
    """Make the shadow schema, with a ledger in it; tables that you have made there before stay.

    Args:
        engine: of the ledger's database, as a role that may create schemas.
        inbox: with the handler.
        handler: its name.
        schema: the name of the shadow.
        copy_tables: names of tables that the handler writes; empty ones of their shape are made in the shadow.

    Raises:
        SetupError: if there is no such handler or table, or the schema is live or holds a ledger already.
    """
    found = inbox.handlers.get(handler)
    if found is None:
        known = ", ".join(sorted(inbox.handlers)) or "none"
        raise SetupError(f"the inbox has no handler {handler!r}; it has: {known}")
    # One that could not hold a ledger is refused here.
    alone = Inbox(*inbox.sources.values(), retry=inbox.retry, schema=schema, future_tolerance=inbox.future_tolerance)
    alone.handlers[handler] = found
    if schema == inbox.schema:
        raise SetupError(f"{schema!r} is the live ledger: give --into the name of a schema that is not there yet")
    with engine.connect() as connection:
        if connection.execute(_IS_LEDGER, {"schema": schema}).scalar_one():
            raise SetupError(
                f"the schema {schema!r} holds a ledger already: give another name, or drop it "
                f"(DROP SCHEMA {quoted(schema)} CASCADE)"
            )
        live = [_find(connection, name) for name in copy_tables]
        until = select(func.coalesce(func.max(tables(inbox.schema).deliveries.c.id), 0))
        until_id = int(connection.execute(until).scalar_one())
        is_there = bool(connection.execute(_IS_THERE, {"schema": schema}).scalar_one())
    with engine.begin() as connection:
        if not is_there:
            connection.exec_driver_sql(f"CREATE SCHEMA {quoted(schema)}".replace("%", "%%"))
        for name, place in zip(copy_tables, live, strict=True):
            copy = f"{quoted(schema)}.{quoted(name.rpartition('.')[2])}"
            connection.exec_driver_sql(f"CREATE TABLE {copy} (LIKE {place} INCLUDING ALL)".replace("%", "%%"))
    migrate.upgrade(engine, schema=schema)
    return Shadow(schema, inbox.schema, alone, found, until_id)


def _find(connection: Connection, name: str) -> str:
    place = connection.execute(_WHERE, {"name": name}).scalar()
    if place is None:
        raise SetupError(f"there is no table {name!r} to copy: write it as the handler does, or with its schema")
    return str(place)
