"""What a check finds, and from where on something counts as a finding."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from hookledger.inbox import Inbox


class Severity(enum.StrEnum):
    """How bad a finding is. Errors and warnings make a ledger unhealthy, notes do not."""

    ERROR = "error"
    """Something does not work, or what was acknowledged may be lost."""
    WARNING = "warning"
    """It works, and will hurt."""
    NOTE = "note"
    """Good to know."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Args:
        severity: how bad it is.
        check: the name of the check, as in docs/doctor.md.
        what: what is so, in one sentence; it holds no secret.
        do: what to do about it, in one sentence.
    """

    severity: Severity
    check: str
    what: str
    do: str


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on something counts.

    Args:
        handler: how long a handler may take; time limits of the role that are shorter are told.
        check: how long the database may take for one check.
        clock: how far the clock of this machine and that of the database may be apart.
        open_transaction: how long a transaction may be open.
        overdue: how long a delivery may be due before it is told.
        connections: the share of the connections that may be in use.
    """

    handler: timedelta = timedelta(seconds=30)
    check: timedelta = timedelta(seconds=5)
    clock: timedelta = timedelta(seconds=30)
    open_transaction: timedelta = timedelta(minutes=10)
    overdue: timedelta = timedelta(minutes=1)
    connections: float = 0.8


@dataclass(frozen=True, slots=True)
class Subject:
    """What is examined.

    Args:
        inbox: None to look at the ledger only.
        schema: of the ledger.
        limits: from where on something counts.
        clock: of this machine, as Unix time in seconds.
    """

    inbox: Inbox | None
    schema: str
    limits: Limits
    clock: Callable[[], float]


Look = Callable[[Connection, Subject], Iterable[Finding]]
"""A check: it looks, over a connection in a transaction that is rolled back, and gives what it finds."""


def is_healthy(findings: Iterable[Finding]) -> bool:
    """Whether there are notes at the most."""
    return all(finding.severity is Severity.NOTE for finding in findings)


def in_words(span: timedelta | float) -> str:
    """A span of time, in seconds if it is a number, as a person reads it."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.3g} seconds"
