"""Checks of settings of the role, the database or the server that hurt a worker.

What counts is the value that a session begins with, wherever it was set: `pg_settings.reset_val`.
https://www.postgresql.org/docs/current/runtime-config-client.html
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, text

from hookledger.doctor.finding import Finding, Severity, Subject, in_words
from hookledger.worker.connector import CHECK_CLIENT, CHECK_CLIENT_EVERY, LIFTED

_RESET = text("SELECT name, reset_val FROM pg_catalog.pg_settings WHERE name = ANY(:names)")

CUTS = {
    "statement_timeout": "cancels a statement of a handler, which counts as its failure",
    "lock_timeout": "cancels a statement of a handler that waits for a row, which counts as its failure",
    "idle_in_transaction_session_timeout": "cuts a connection while its handler does something else",
    "transaction_timeout": "cuts a connection while its handler runs",
}


def time_limits(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """Time limits that are shorter than a handler may take."""
    found = connection.execute(_RESET, {"names": list(CUTS)})
    for name, setting in found:
        seconds = float(setting) / 1000
        if not 0 < seconds < subject.limits.handler.total_seconds():
            continue
        what = f"{name} is {in_words(seconds)}"
        if name in LIFTED:
            yield Finding(
                Severity.NOTE,
                "time-limits",
                f"{what}; a worker lifts it for its own transactions",
                "nothing, unless your own programs use the same role",
            )
        else:
            yield Finding(
                Severity.WARNING,
                "time-limits",
                f"{what}, which {CUTS[name]}; a handler may take {in_words(subject.limits.handler)}",
                f"ALTER ROLE ... SET {name} = 0 for the role of the workers, or to more than their handlers take",
            )


def isolation(connection: Connection, _: Subject) -> Iterator[Finding]:
    """A level of isolation other than the usual one."""
    ((_, found),) = connection.execute(_RESET, {"names": ["default_transaction_isolation"]})
    if found != "read committed":
        yield Finding(
            Severity.NOTE,
            "isolation",
            f"default_transaction_isolation is {found!r}: receivers then need a transaction of three round trips in "
            "place of one statement; workers set the level that they need",
            "ALTER ROLE ... SET default_transaction_isolation = 'read committed' for the role of the receivers",
        )


def client_check(connection: Connection, _: Subject) -> Iterator[Finding]:
    """Whether the server notices in the middle of a statement that a client is gone."""
    found = connection.execute(_RESET, {"names": [CHECK_CLIENT]}).all()
    if not found:
        yield Finding(
            Severity.NOTE,
            "client-check",
            f"the server does not know {CHECK_CLIENT}: the rows of a worker that is killed within a long statement "
            "stay locked until that ends",
            "keep the statements of handlers short",
        )
    elif found[0].reset_val == "0":
        yield Finding(
            Severity.NOTE,
            "client-check",
            f"{CHECK_CLIENT} is 0, so a statement runs on, with its locks, when its client was killed; "
            f"a worker sets it to {CHECK_CLIENT_EVERY} for its own transactions",
            f"set {CHECK_CLIENT} = '{CHECK_CLIENT_EVERY}' on the server, if your own programs run long statements",
        )
