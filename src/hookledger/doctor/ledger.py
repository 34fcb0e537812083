"""Checks of the ledger's schema: its revision, its tables, the rights of the role, its indexes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from sqlalchemy import Connection, text

from hookledger.doctor.finding import Finding, Severity, Subject
from hookledger.errors import SchemaError
from hookledger.ledger.ready import missing
from hookledger.ledger.revision import command, read_revision
from hookledger.ledger.rights import quoted
from hookledger.ledger.schema import VERSION_TABLE

_PLACE = text(
    """
    SELECT current_user, oid, has_schema_privilege(oid, 'USAGE'), (
        SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname = :versions
    ) FROM (SELECT 1) AS one LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = :schema
    """
)
_INVALID = text(
    """
    SELECT i.relname, t.relname, x.indisunique
    FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
    JOIN pg_catalog.pg_class t ON t.oid = x.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
    WHERE n.nspname = :schema AND NOT (x.indisvalid AND x.indisready AND x.indislive) ORDER BY 1
    """
)


def schema(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """Whether the ledger is there, and as old as the code."""
    from hookledger import migrate

    name = subject.schema
    upgrade = f"run {command('db upgrade', name)}"
    place = connection.execute(_PLACE, {"schema": name, "versions": VERSION_TABLE}).one()
    if place.oid is None:
        yield Finding(Severity.ERROR, "schema", f"there is no schema {name!r}", upgrade)
        return
    if place[3] is None:
        yield Finding(Severity.ERROR, "schema", f"there is no ledger in the schema {name!r}", upgrade)
        return
    revision = read_revision(connection, name)
    if revision == migrate.head():
        return
    if revision is None or revision in migrate.revisions():
        yield Finding(
            Severity.ERROR,
            "schema",
            f"the ledger is at {revision or 'no revision'}, older than this hookledger, which needs {migrate.head()}",
            upgrade,
        )
    else:
        yield Finding(
            Severity.ERROR,
            "schema",
            f"the ledger is at {revision}, newer than this hookledger, which knows {migrate.head()}",
            "install the version of hookledger that made it, or a later one",
        )


def tables(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """Whether the tables are those of the revision."""
    from hookledger import migrate

    if not _is_newest(connection, subject.schema):
        return
    try:
        migrate.check(connection, subject.schema)
    except SchemaError as error:
        yield Finding(
            Severity.ERROR,
            "tables",
            str(error),
            "take back what was changed by hand, or restore the tables from a backup",
        )


def rights(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """What the role lacks, each with the statement that grants it."""
    name = subject.schema
    role, namespace, usable, versions = connection.execute(_PLACE, {"schema": name, "versions": VERSION_TABLE}).one()
    if namespace is None:
        return
    place, grantee = quoted(name), quoted(role)
    if not usable:
        yield Finding(
            Severity.ERROR,
            "rights",
            f"the role {role!r} lacks USAGE on the schema {name!r}",
            f"as the owner, run GRANT USAGE ON SCHEMA {place} TO {grantee}, or all that "
            f"{command(f'db grants {shlex.quote(role)}', name)} prints",
        )
    if versions is None:
        return
    _, lacking = missing(connection, namespace)
    for table, found in lacking.items():
        kind = "SEQUENCE " if found == ["USAGE"] else ""
        yield Finding(
            Severity.ERROR,
            "rights",
            f"the role {role!r} lacks {', '.join(found)} on {name}.{table}",
            f"as the owner, run GRANT {', '.join(found)} ON {kind}{place}.{quoted(table)} TO {grantee}, or all that "
            f"{command(f'db grants {shlex.quote(role)}', name)} prints",
        )


def indexes(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """Indexes that a broken CREATE or REINDEX left behind: they are kept up to date and used by nobody.

    https://www.postgresql.org/docs/current/sql-createindex.html#SQL-CREATEINDEX-CONCURRENTLY
    """
    for index, table, unique in connection.execute(_INVALID, {"schema": subject.schema}):
        place = f"{quoted(subject.schema)}.{quoted(index)}"
        leftover = index.endswith(("_ccnew", "_ccold"))
        yield Finding(
            Severity.ERROR if unique and not leftover else Severity.WARNING,
            "indexes",
            f"the index {index} of {table} is invalid" + (", so nothing keeps its key unique" if unique else ""),
            f"DROP INDEX {place}" if leftover else f"REINDEX INDEX CONCURRENTLY {place}",
        )


def _is_newest(connection: Connection, name: str) -> bool:
    from hookledger import migrate

    place = connection.execute(_PLACE, {"schema": name, "versions": VERSION_TABLE}).one()
    return place[3] is not None and read_revision(connection, name) == migrate.head()
