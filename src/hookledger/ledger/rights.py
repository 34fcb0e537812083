"""What a role must be allowed in order to receive and to work (D13)."""

from __future__ import annotations

from sqlalchemy.dialects import postgresql

from hookledger.ledger.schema import VERSION_TABLE

APPEND = ("SELECT", "INSERT")
RECORD = ("SELECT", "INSERT", "UPDATE")
MOVE = ("SELECT", "INSERT", "UPDATE", "DELETE")
RUN_TIME_RIGHTS: dict[str, tuple[str, ...]] = {
    VERSION_TABLE: ("SELECT",),
    "payloads": APPEND,
    "deliveries": APPEND,
    "redeliveries": APPEND,
    "failures": APPEND,
    "effects": APPEND,
    "pending": MOVE,
    "dead_letters": MOVE,
    "resource_state": MOVE,
    "replays": RECORD,
    "replayed": APPEND,
    "quarantine": MOVE,
    "pauses": MOVE,
    "imported": APPEND,
    "erased": APPEND,
}
"""The rights by table. A role that has no more than these cannot change what the ledger has recorded."""

# Quotes names for text that a person or psql reads, where a % stays single.
_PREPARER = postgresql.dialect(paramstyle="named").identifier_preparer  # type: ignore[no-untyped-call]


def quoted(name: str) -> str:
    """The name as it is written in SQL, in double quotes where it needs them."""
    return str(_PREPARER.quote(name))


def grants(schema: str, role: str) -> str:
    """The GRANT statements that let a role receive and work, but neither migrate nor change what is recorded.

    Run them as the owner of the tables, again after an upgrade that adds a table.
    https://www.postgresql.org/docs/current/sql-grant.html
    """
    place, grantee = quoted(schema), quoted(role)
    by_rights: dict[tuple[str, ...], list[str]] = {}
    for name, rights in RUN_TIME_RIGHTS.items():
        by_rights.setdefault(rights, []).append(f"{place}.{quoted(name)}")
    lines = [f"GRANT USAGE ON SCHEMA {place} TO {grantee};"]
    lines += [f"GRANT {', '.join(rights)} ON {', '.join(names)} TO {grantee};" for rights, names in by_rights.items()]
    # The ids are taken with nextval before the rows are written.
    lines.append(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {place} TO {grantee};")
    return "\n".join(lines) + "\n"
