"""Checks of the server: its version, whether it keeps what it commits, whether it takes writes.

https://www.postgresql.org/docs/current/runtime-config-wal.html
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, text

from hookledger.doctor.finding import Finding, Severity, Subject
from hookledger.ledger.ready import OLDEST_SERVER
from hookledger.ledger.rights import quoted

_SETTINGS = text("SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY(:names)")


def read_settings(connection: Connection, *names: str) -> dict[str, str]:
    """The settings of the session, those that the server knows."""
    return {row.name: row.setting for row in connection.execute(_SETTINGS, {"names": list(names)})}


def server(connection: Connection, _: Subject) -> Iterator[Finding]:
    """The version of the server, and what the role may do to it."""
    number, superuser = connection.execute(
        text("SELECT current_setting('server_version_num')::integer / 10000, current_setting('is_superuser') = 'on'")
    ).one()
    if number < OLDEST_SERVER:
        yield Finding(
            Severity.ERROR,
            "server",
            f"the server is PostgreSQL {number}, and hookledger needs {OLDEST_SERVER}",
            f"move to PostgreSQL {OLDEST_SERVER} or newer",
        )
    if superuser:
        yield Finding(
            Severity.NOTE,
            "server",
            "the role is a superuser, which may change what the ledger has recorded",
            "let receivers and workers connect as a role that has only what `hookledger db grants ROLE` prints",
        )


def durability(connection: Connection, _: Subject) -> Iterator[Finding]:
    """Whether a commit is on the disk when it is told."""
    found = read_settings(connection, "fsync", "full_page_writes", "synchronous_commit")
    for name in ("fsync", "full_page_writes"):
        if found.get(name) == "off":
            yield Finding(
                Severity.ERROR,
                "durability",
                f"{name} is off: a crash of the machine may damage the database, with what was acknowledged",
                f"set {name} = on in postgresql.conf and reload the server",
            )
    if found.get("synchronous_commit") == "off":
        yield Finding(
            Severity.ERROR,
            "durability",
            "synchronous_commit is off: events are acknowledged before they are on the disk, and a crash loses some",
            "ALTER ROLE ... SET synchronous_commit = on, for the role of receivers and workers",
        )


def read_only(connection: Connection, _: Subject) -> Iterator[Finding]:
    """Whether the server takes writes from this role."""
    standby, refused = connection.execute(
        text("SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'")
    ).one()
    if standby:
        yield Finding(
            Severity.ERROR, "read-only", "the server is a standby, which takes no writes", "give the URL of the primary"
        )
    elif refused:
        yield Finding(
            Severity.ERROR,
            "read-only",
            "the transactions of this role are read-only",
            "switch off default_transaction_read_only, which may be set on the role, the database or the server",
        )


def vacuum(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """Whether what was settled is cleared away from pending."""
    found = read_settings(connection, "autovacuum", "track_counts")
    off = [name for name, setting in sorted(found.items()) if setting == "off"]
    if off:
        yield Finding(
            Severity.WARNING,
            "vacuum",
            f"{' and '.join(off)} is off, so nothing clears pending of settled rows, and claims become slower",
            f"set {' and '.join(f'{name} = on' for name in off)} in postgresql.conf and reload the server",
        )
    switched_off = connection.execute(
        text(
            "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = :schema AND 'autovacuum_enabled=false' = ANY(c.reloptions) ORDER BY 1"
        ),
        {"schema": subject.schema},
    ).scalars()
    for name in switched_off:
        yield Finding(
            Severity.WARNING,
            "vacuum",
            f"autovacuum is switched off for the table {name}",
            f"ALTER TABLE {quoted(subject.schema)}.{quoted(name)} RESET (autovacuum_enabled)",
        )


def encoding(connection: Connection, _: Subject) -> Iterator[Finding]:
    """Whether every text can be stored."""
    found = str(connection.execute(text("SELECT current_setting('server_encoding')")).scalar_one())
    if found != "UTF8":
        yield Finding(
            Severity.ERROR,
            "encoding",
            f"the database is encoded in {found}, which cannot hold every text that a sender may put into an id",
            "make a database with ENCODING 'UTF8' for the ledger",
        )
