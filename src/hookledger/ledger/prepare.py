"""What comes before a migration: the lock that only one holds, and the schema (D13)."""

from __future__ import annotations

import hashlib
import logging

from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateSchema

from hookledger.errors import SetupError
from hookledger.ledger.rights import quoted

NO_ADVISORY_LOCKS = ("42883", "0A000")  # undefined_function, feature_not_supported
LONGEST_NAME = 63  # bytes; PostgreSQL cuts what is longer, and would then find another schema

logger = logging.getLogger(__name__)


def prepare(connection: Connection, schema: str) -> None:
    """Take the lock of the ledger until the end of the transaction, then see to it that the schema is there.

    Raises:
        SetupError: if the role may not create the schema, or the connection is in autocommit mode, where
            the lock would be gone at once.
    """
    if getattr(connection.connection.dbapi_connection, "autocommit", False):
        raise SetupError(
            "a ledger is migrated in one transaction: call this outside of autocommit_block(), or give an engine"
        )
    require_name(schema)
    try:
        # In a savepoint: a server without advisory locks must not lose the transaction for it.
        with connection.begin_nested():
            connection.execute(select(func.pg_catalog.pg_advisory_xact_lock(lock_key(schema))))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) not in NO_ADVISORY_LOCKS:
            raise
        logger.info("the server has no advisory locks: migrate from one place at a time")
    found = connection.execute(
        text(
            "SELECT current_user, has_database_privilege(current_database(), 'CREATE'),"
            " EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = :schema)"
        ),
        {"schema": schema},
    ).one()
    role, may_create, exists = found
    if not exists:
        if not may_create:
            raise SetupError(
                f"the role {role!r} may not create the schema {schema!r}: let the owner of the database run "
                f"CREATE SCHEMA {quoted(schema)} AUTHORIZATION {quoted(role)}"
            )
        # Not where it exists: with IF NOT EXISTS, too, PostgreSQL asks for the right to create.
        connection.execute(CreateSchema(schema, if_not_exists=True))


def require_name(schema: str) -> None:
    """See that PostgreSQL takes the name as it is.

    Raises:
        SetupError: if it does not.
    """
    if not 0 < len(schema.encode()) <= LONGEST_NAME or "\x00" in schema or schema.startswith("pg_"):
        raise SetupError(f"the schema name {schema!r} is not one that PostgreSQL takes")


def lock_key(schema: str, purpose: str = "migrate") -> int:
    """The number of the advisory lock under which the ledger of that schema is migrated, or something else is done that
    only one may do at a time."""
    digest = hashlib.sha256(f"hookledger {purpose} {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
