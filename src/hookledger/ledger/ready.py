"""Whether a ledger can be worked with: told at start, in one sentence that says what to do (D13)."""

from __future__ import annotations

import shlex

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from hookledger.engine import connect, describe, unreachable
from hookledger.errors import SchemaError, SetupError
from hookledger.ledger.pooler import check_prepared_statements
from hookledger.ledger.revision import NEWEST, command, read_revision
from hookledger.ledger.rights import RUN_TIME_RIGHTS, quoted
from hookledger.ledger.schema import VERSION_TABLE

OLDEST_SERVER = 14

# One look at the server, and one at the catalog; neither touches a table of the ledger, so neither can be refused.
_SERVER = text(
    """
    SELECT current_setting('server_version_num')::integer / 10000, current_setting('transaction_read_only') = 'on',
           pg_is_in_recovery(), current_user, oid, has_schema_privilege(oid, 'USAGE')
    FROM (SELECT 1) AS one LEFT JOIN pg_catalog.pg_namespace ON nspname = :schema
    """
)
_MISSING = text(
    """
    SELECT needed.name, needed.right, found.oid IS NULL
    FROM unnest(CAST(:names AS text[]), CAST(:rights AS text[])) AS needed (name, "right")
    LEFT JOIN pg_catalog.pg_class AS found ON found.relname = needed.name AND found.relnamespace = :schema
    WHERE found.oid IS NULL OR NOT has_table_privilege(found.oid, needed.right)
    UNION ALL
    SELECT relname, 'USAGE', false FROM pg_catalog.pg_class
    WHERE relnamespace = :schema AND CASE relkind WHEN 'S' THEN NOT has_sequence_privilege(oid, 'USAGE') END
    """
)


def check_ready(connection: Connection, schema: str) -> None:
    """See that the server, the schema, its revision and the rights of the role are what the code needs.

    Args:
        connection: open; its transaction is used and left open. An asynchronous caller goes through
            `await connection.run_sync(check_ready, schema)`.
        schema: where the ledger is.

    Raises:
        SchemaError: if the ledger is missing, or older or newer than the code.
        SetupError: if the server is too old or read-only, or the role lacks a right.
        DatabaseUnreachable: if the server went away.
    """
    url = connection.engine.url
    try:
        server, read_only, standby, role, namespace, usable = connection.execute(_SERVER, {"schema": schema}).one()
        if server < OLDEST_SERVER:
            raise SetupError(f"{describe(url)} is PostgreSQL {server}: hookledger needs {OLDEST_SERVER} or newer")
        if standby:
            raise SetupError(f"{describe(url)} is a standby, which takes no writes: give the URL of the primary")
        if read_only:
            raise SetupError(
                f"{describe(url)} takes no writes from the role {role!r}: switch off default_transaction_read_only"
            )
        upgrade = f"run {command('db upgrade', schema)}"
        grant = f"as the owner, run what {command(f'db grants {shlex.quote(role)}', schema)} prints"
        if namespace is None:
            raise SchemaError(f"there is no schema {schema!r} in {describe(url)}: {upgrade}")
        if not usable:
            raise SetupError(f"the role {role!r} lacks USAGE on the schema {schema!r}: {grant}")
        absent, lacking = missing(connection, namespace)
        if VERSION_TABLE in absent:
            raise SchemaError(f"there is no ledger in the schema {schema!r} of {describe(url)}: {upgrade}")
        if VERSION_TABLE not in lacking:
            _require_newest(schema, read_revision(connection, schema))
        if absent:
            raise SchemaError(
                f"the schema {schema!r} lacks {', '.join(absent)}, though it is at {NEWEST}: "
                f"{command('db check', schema)} shows what was changed; restore it from a backup"
            )
        if lacking:
            rights = "; ".join(f"{', '.join(found)} on {quoted(schema)}.{name}" for name, found in lacking.items())
            raise SetupError(f"the role {role!r} lacks {rights}: {grant}")
    except DBAPIError as error:
        if error.connection_invalidated:
            raise unreachable(url, error) from error
        raise


def open_ready(engine: Engine, schema: str) -> None:
    """Connect once, and see that the ledger can be worked with.

    Args:
        engine: as the application will use it.
        schema: where the ledger is.

    Raises:
        DatabaseUnreachable: if no connection can be made, with the server and its reason.
        SetupError: as `check_ready`; or if a pooler is in front of the server in a way that breaks prepared statements.
    """
    with connect(engine) as connection:
        try:
            check_ready(connection, schema)
            check_prepared_statements(connection)
        finally:
            # Nobody needs it again, and a pool that resets one that is lost tells so with a traceback.
            if _is_lost(connection):
                connection.invalidate()


def _is_lost(connection: Connection) -> bool:
    """Whether the driver has noticed that its connection is gone."""
    return not connection.invalidated and bool(getattr(connection.connection.driver_connection, "closed", False))


async def open_ready_asynchronously(engine: AsyncEngine, schema: str) -> None:
    """`open_ready` for an AsyncEngine."""
    await greenlet_spawn(open_ready, engine.sync_engine, schema)


def _require_newest(schema: str, revision: str | None) -> None:
    if revision != NEWEST:
        from hookledger import migrate

        migrate.require_head(schema, revision)


def missing(connection: Connection, namespace: int) -> tuple[list[str], dict[str, list[str]]]:
    """The tables that are not there, and by table or sequence the rights that the role lacks."""
    needed = [(name, right) for name, rights in RUN_TIME_RIGHTS.items() for right in rights]
    found = connection.execute(
        _MISSING,
        {
            "names": [name for name, _ in needed],
            "rights": [right for _, right in needed],
            "schema": namespace,
        },
    )
    absent: dict[str, None] = {}
    lacking: dict[str, list[str]] = {}
    for name, right, is_absent in found:
        if is_absent:
            absent[name] = None
        else:
            lacking.setdefault(name, []).append(right)
    # In the order in which they were asked for; the server gives them in any.
    asked = {each: place for place, each in enumerate(needed)}
    return list(absent), {
        name: sorted(rights, key=lambda right: asked.get((name, right), 0)) for name, rights in lacking.items()
    }
