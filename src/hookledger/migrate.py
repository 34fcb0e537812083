"""Make, change and check the tables of a ledger (D13).

The revisions are Alembic's, in the package `hookledger_migrations`, with a version table of their own in the
ledger's schema. A revision is handed its operations and its schema as arguments, so that nothing here touches
Alembic's global proxies: an upgrade may run inside the user's own revision, in any thread, and beside another.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateSchema

from hookledger.engine import connect
from hookledger.errors import SchemaError, SetupError
from hookledger.inbox import DEFAULT_SCHEMA
from hookledger.ledger.prepare import lock_key, prepare, require_name
from hookledger.ledger.revision import command, read_revision
from hookledger.ledger.rights import grants as grants
from hookledger.ledger.schema import VERSION_TABLE, tables

SCRIPT_LOCATION = "hookledger_migrations:."
PARTITION_PREFIX = "payloads_"
INSUFFICIENT_PRIVILEGE = "42501"


def upgrade(bind: Engine | Connection, *, schema: str = DEFAULT_SCHEMA, revision: str = "head") -> None:
    """Bring the ledger to a revision, the newest by default; create the schema if it is not there.

    Several processes may do this at once: one works, the others wait and find nothing left to do.

    Args:
        bind: an engine, for a transaction of our own; or a connection, for example `op.get_bind()` in a
            revision of yours: everything then runs in its transaction, and committing is left to you.
        schema: where the ledger is.
        revision: "head", or a revision id.

    Raises:
        DatabaseUnreachable: if an engine cannot connect.
        SetupError: if the role lacks the rights, or the connection is in autocommit mode.
        SchemaError: if the ledger is at a revision that this version of hookledger does not know.
    """
    script = _script()
    _run(bind, schema, lambda current, _: script._upgrade_revs(revision, current))


def downgrade(bind: Engine | Connection, *, schema: str = DEFAULT_SCHEMA, revision: str) -> None:
    """Take the ledger back to an older revision; "base" drops its tables with all they hold.

    The schema itself and its version table stay. Arguments and errors are those of `upgrade`.
    """
    script = _script()
    _run(bind, schema, lambda current, _: script._downgrade_revs(revision, current))


def current(bind: Engine | Connection, schema: str = DEFAULT_SCHEMA) -> str | None:
    """The revision of the ledger, or None if there is no ledger in that schema.

    Raises:
        DatabaseUnreachable: if an engine cannot connect.
        SetupError: if the role may not look into the schema.
    """
    with _transaction(bind) as connection, _understood():
        if not inspect(connection).has_table(VERSION_TABLE, schema=schema):
            return None
        return read_revision(connection, schema)


def head() -> str:
    """The newest revision that this version of hookledger knows."""
    return str(_script().get_current_head())


def revisions() -> list[str]:
    """All revisions that this version of hookledger knows, the oldest first."""
    return [script.revision for script in reversed(list(_script().walk_revisions()))]


def sql(schema: str = DEFAULT_SCHEMA, revision: str = "head") -> str:
    """The statements of an upgrade, for somebody else to run.

    Args:
        schema: where the ledger is.
        revision: where to go, from nothing; or "from:to".
    """
    script = _script()
    start, colon, end = revision.rpartition(":")
    output = io.StringIO()
    context = MigrationContext.configure(
        dialect_name="postgresql",
        dialect_opts={"paramstyle": "named"},
        opts={
            **options(schema),
            "script": script,
            "as_sql": True,
            "literal_binds": True,
            "output_buffer": output,
            "starting_rev": start if colon else None,
            "fn": lambda current, _: script._upgrade_revs(end, current),
        },
    )
    with _understood():
        write_offline(context, schema, context.run_migrations)
    return output.getvalue()


def check(bind: Engine | Connection, schema: str = DEFAULT_SCHEMA) -> None:
    """Compare the tables in the database with those that the code expects.

    Raises:
        DatabaseUnreachable: if an engine cannot connect.
        SchemaError: if the ledger is not at the newest revision, or a table was changed by hand.
    """
    with _transaction(bind) as connection:
        require_head(schema, current(connection, schema))
        context = MigrationContext.configure(connection, opts=options(schema, connection.dialect.default_schema_name))
        differences = compare_metadata(context, tables(schema).metadata)
    if differences:
        found = "; ".join(_in_words(difference) for difference in _flat(differences))
        raise SchemaError(f"the tables in the schema {schema!r} are not those of {head()}: {found}")


def require_head(schema: str, revision: str | None) -> None:
    """Hold the revision of a ledger against the newest one.

    Raises:
        SchemaError: if it is missing, older or unknown, with what to do about it.
    """
    if revision is None:
        raise SchemaError(f"there is no ledger in the schema {schema!r}: run {command('db upgrade', schema)}")
    if revision == head():
        return
    if revision in revisions():
        raise SchemaError(
            f"the ledger in the schema {schema!r} is at {revision}, the code needs {head()}: "
            f"run {command('db upgrade', schema)}"
        )
    raise SchemaError(
        f"the ledger in the schema {schema!r} is at {revision}, newer than this hookledger, which knows {head()}: "
        "install the version that made it, or a later one"
    )


def ini(schema: str = DEFAULT_SCHEMA) -> str:
    """The text of an ini file for `alembic -c`. It names no database: that is read from DATABASE_URL."""
    return (
        "# Migrations of hookledger: `alembic -c THIS_FILE upgrade head`, with DATABASE_URL set.\n"
        "[alembic]\n"
        f"script_location = {SCRIPT_LOCATION}\n"
        f"hookledger_schema = {schema.replace('%', '%%')}\n"
    )


def leave_out(schema: str | None = DEFAULT_SCHEMA) -> Callable[[str | None, str, Any], bool]:
    """A filter for the `include_name` of your own env.py: autogenerate then never proposes to drop the ledger.

    It is needed if you set `include_schemas=True`, or keep the ledger among your own tables.
    https://alembic.sqlalchemy.org/en/latest/autogenerate.html#omitting-based-on-table-name

    Args:
        schema: where the ledger is; None for the connection's default schema.
    """
    names = {VERSION_TABLE, *_names()}
    places = {None, "public"} if schema in (None, "public") else {schema}

    def include(name: str | None, type_: str, parent_names: Any) -> bool:
        if type_ != "table" or name is None or parent_names.get("schema_name") not in places:
            return True
        return name not in names and not name.startswith(PARTITION_PREFIX)

    return include


def include_name(name: str | None, type_: str, parent_names: Any) -> bool:
    """`leave_out` for a ledger in the schema `hookledger`: give it to `context.configure` as it is."""
    return leave_out()(name, type_, parent_names)


def options(schema: str, default_schema: str | None = None) -> dict[str, Any]:
    """What Alembic has to be told, here and in env.py: our version table, and to look at our schema only.

    Args:
        schema: where the ledger is.
        default_schema: the connection's default schema, which Alembic calls None.
    """
    # Partitions, and tables of yours beside the ledger's, are no difference.
    names = _names()

    def include(name: str | None, type_: str, _: Any) -> bool:
        if type_ == "schema":
            return name == schema or (name is None and default_schema == schema)
        if type_ == "table":
            return name in names
        return True

    return {
        "version_table": VERSION_TABLE,
        "version_table_schema": schema,
        "include_schemas": True,
        "include_name": include,
        "compare_type": True,
        "compare_server_default": True,
    }


def write_offline(context: MigrationContext, schema: str, run: Callable[..., None]) -> None:
    """Write the statements of an upgrade instead of running them."""
    require_name(schema)
    with context.begin_transaction():
        context.execute(f"SELECT pg_catalog.pg_advisory_xact_lock({lock_key(schema)})")
        if not context.get_current_heads():
            context.impl.static_output("-- Leave this line out where the schema is already there.")
            context.execute(CreateSchema(schema, if_not_exists=True))
        run(op=Operations(context), schema=schema)


@cache
def _names() -> frozenset[str]:
    return frozenset([table.name for table in tables(DEFAULT_SCHEMA).metadata.sorted_tables])


@cache
def _script() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", SCRIPT_LOCATION)
    return ScriptDirectory.from_config(config)


def _run(bind: Engine | Connection, schema: str, steps: Callable[[Any, MigrationContext], Any]) -> None:
    with _transaction(bind) as connection, _understood():
        prepare(connection, schema)
        context = MigrationContext.configure(connection, opts={**options(schema), "script": _script(), "fn": steps})
        context.run_migrations(op=Operations(context), schema=schema)


@contextmanager
def _understood() -> Iterator[None]:
    """Turn what Alembic and the server refuse into our errors."""
    try:
        yield
    except CommandError as error:
        raise SchemaError(f"cannot migrate, update hookledger or name another revision: {error}") from error
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != INSUFFICIENT_PRIVILEGE:
            raise
        reason = str(error.orig).partition("\n")[0]
        raise SetupError(f"the role lacks a right, do this as the owner of the schema: {reason}") from error


@contextmanager
def _transaction(bind: Engine | Connection) -> Iterator[Connection]:
    if isinstance(bind, Connection):
        yield bind
        return
    with connect(bind) as connection:
        # In a stricter level the statements after the lock would see the state from before it.
        connection.execution_options(isolation_level="READ COMMITTED")
        with connection.begin():
            yield connection


def _flat(differences: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for difference in differences:
        if isinstance(difference, list):
            yield from difference
        else:
            yield difference


def _in_words(difference: tuple[Any, ...]) -> str:
    kind, *parts = difference
    names = [part if isinstance(part, str) else getattr(part, "name", None) for part in parts[:3]]
    return f"{kind.replace('_', ' ')} {'.'.join(name for name in names if name)}"
