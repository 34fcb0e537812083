"""The hint to workers that something came: NOTIFY, after the commit and off the way of the answer.

A NOTIFY inside the recording transaction would make all commits queue for one lock; and losing a hint costs
only one interval of polling. https://www.postgresql.org/docs/current/sql-notify.html
"""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection

SHORTEST_GAP = 0.02
"""Seconds between two hints; what comes in between shares the next one."""


def channel(schema: str) -> str:
    """The channel of a ledger: an identifier of 63 bytes at the most, distinct for distinct schemas."""
    name = f"hookledger_{schema}"
    if len(name.encode()) <= 63:
        return name
    return f"hookledger_{hashlib.sha256(schema.encode()).hexdigest()[:48]}"


def announce(connection: Connection, schema: str) -> None:
    """Send the hint, by one statement that is a transaction by itself and waits for no disk."""
    connection.exec_driver_sql(
        "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%(channel)s, '')",
        {"channel": channel(schema)},
    )
