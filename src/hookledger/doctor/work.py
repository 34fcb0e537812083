"""Checks of the work: what waits, what was given up, and where the payloads go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, func, select, text

from hookledger.doctor.finding import Finding, Severity, Subject, in_words
from hookledger.ledger.revision import command
from hookledger.ledger.schema import tables

COUNTED = 10_000
"""Rows that are counted at the most."""

_PARTITIONS = text(
    """
    SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bound, pg_relation_size(c.oid) AS size
    FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
    JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace
    WHERE n.nspname = :schema AND p.relname = 'payloads' ORDER BY 1
    """
)
_BOUNDS = re.compile(r"FROM \((?:'([^']*)'|MINVALUE)\) TO \((?:'([^']*)'|MAXVALUE)\)")


def pending(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """How long the oldest delivery has been due."""
    table = tables(subject.schema).pending
    oldest = connection.execute(
        select(func.extract("epoch", func.clock_timestamp() - table.c.due_at))
        .order_by(table.c.due_at, table.c.delivery_id)
        .limit(1)
    ).scalar()
    if oldest is not None and float(oldest) > subject.limits.overdue.total_seconds():
        yield Finding(
            Severity.NOTE,
            "pending",
            f"the oldest delivery has been due for {in_words(float(oldest))}",
            f"see that a worker runs, and whether one is enough: {command('status', subject.schema)} tells what waits",
        )


def dead_letters(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """Deliveries that were given up within the last hour."""
    dead = tables(subject.schema).dead_letters
    recent = (
        select(dead.c.reason)
        .where(dead.c.died_at > func.now() - timedelta(hours=1))
        .order_by(dead.c.died_at.desc())
        .limit(COUNTED)
        .subquery()
    )
    counted = connection.execute(
        select(recent.c.reason, func.count()).group_by(recent.c.reason).order_by(recent.c.reason)
    ).all()
    total = sum(count for _, count in counted)
    if total:
        more = " or more" if total == COUNTED else ""
        given_up = "1 delivery was" if total == 1 else f"{total}{more} deliveries were"
        reasons = ", ".join(f"{count} {reason}" for reason, count in counted)
        yield Finding(
            Severity.NOTE,
            "dead-letters",
            f"{given_up} given up in the last hour ({reasons})",
            "look at them with `hookledger dead`, mend what their errors tell, then run them with `hookledger replay`",
        )


def partitions(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """Whether there is a partition for the payloads of tomorrow, and whether any landed in the default one."""
    # The bounds are told in the time zone of the session.
    connection.execute(text("SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true)"))
    found = connection.execute(_PARTITIONS, {"schema": subject.schema}).all()
    if not found:
        return
    tomorrow = connection.execute(text("SELECT now() + interval '1 day'")).scalar_one()
    if not any(_holds(partition.bound, tomorrow) for partition in found):
        yield Finding(
            Severity.NOTE,
            "partitions",
            "there is no partition of payloads for tomorrow, so they will go to the default one, which retention can "
            "empty only row by row",
            "run `hookledger db partitions` as the owner of the tables, once a week; workers of that role do so "
            "by themselves",
        )
    # By its size: a role needs no right on a partition, and may have none.
    for partition in found:
        if partition.bound == "DEFAULT" and partition.size and len(found) > 1:
            yield Finding(
                Severity.NOTE,
                "partitions",
                f"there are payloads in {partition.relname}: retention deletes them row by row, and their weeks get "
                "no partition",
                "leave those that were imported or that a prune has moved; else run `hookledger db partitions`",
            )


def _holds(bound: str, moment: datetime) -> bool:
    """Whether a partition takes rows of that moment."""
    match = _BOUNDS.search(bound)
    if match is None:
        return False
    first, last = [None if edge is None else _moment(edge) for edge in match.groups()]
    return (first is None or first <= moment) and (last is None or moment < last)


def _moment(written: str) -> datetime:
    read = datetime.fromisoformat(written)
    return read if read.tzinfo else read.replace(tzinfo=UTC)
