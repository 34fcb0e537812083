"""Partitions of the payloads: a week each, made before their time comes.

A week, because each claim opens every partition: with one a day a month of payloads would cost each of them sixty
locks. Weeks begin on Monday at 00:00 UTC, wherever server and session are. A payload of a time without a partition goes
to the default partition, so that nothing is lost where nobody makes any.
https://www.postgresql.org/docs/current/ddl-partitioning.html#DDL-PARTITIONING-DECLARATIVE
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import DDL, Connection, Engine, exists, select, text
from sqlalchemy.exc import DBAPIError

from hookledger.errors import SetupError
from hookledger.ledger.failure import sqlstate
from hookledger.ledger.revision import command
from hookledger.ledger.rights import quoted
from hookledger.ledger.schema import tables
from hookledger.operate.retention.brief import Patience, is_first

logger = logging.getLogger(__name__)

WEEK = timedelta(days=7)
AHEAD = 2
"""Weeks after the present one that have their partition: so long may workers be away."""
PATIENCE = Patience()

DONE_BY_ANOTHER = frozenset({"42P07", "42P17", "23505"})
"""duplicate_table, invalid_object_definition (the ranges overlap), unique_violation (in the catalog)."""
NOT_EMPTY = "23514"
"""check_violation: the default partition has rows of that range."""

_PARTITIONS = text(
    """
    SELECT c.relname, pg_catalog.pg_get_expr(c.relpartbound, c.oid),
           coalesce(pg_catalog.pg_total_relation_size(c.oid), 0)
    FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    JOIN pg_catalog.pg_class p ON p.oid = i.inhparent JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace
    WHERE n.nspname = :schema AND p.relname = 'payloads' ORDER BY c.relname
    """
)
_OWNS = text(
    """
    SELECT pg_catalog.pg_has_role(c.relowner, 'USAGE') AND pg_catalog.has_schema_privilege(n.oid, 'CREATE')
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = :schema AND c.relname = 'payloads'
    """
)
_BOUNDS = re.compile(r"FOR VALUES FROM \((?:'([^']*)'|MINVALUE)\) TO \((?:'([^']*)'|MAXVALUE)\)")
DEFAULT = "DEFAULT"


class Partition(NamedTuple):
    """A partition of the payloads.

    Args:
        name: of the table.
        start, end: what it holds: from the one, up to and without the other; None for no bound.
        size: bytes, with indexes.
        is_default: whether it takes what no other does.
    """

    name: str
    start: datetime | None
    end: datetime | None
    size: int
    is_default: bool = False

    def overlaps(self, start: datetime, end: datetime) -> bool:
        """Whether it holds payloads of that time, as far as its bounds tell; the default one never does."""
        if self.is_default:
            return False
        return (self.start is None or self.start < end) and (self.end is None or self.end > start)


@dataclass(slots=True)
class Made:
    """What became of making partitions.

    Args:
        made: the names of new ones.
        there: how many were there already.
        left_out: the weeks that the default partition already has payloads of; those stay in it.
        by_another: whether somebody else was making them.
    """

    made: list[str] = field(default_factory=list)
    there: int = 0
    left_out: list[datetime] = field(default_factory=list)
    by_another: bool = False


def week_of(moment: datetime) -> datetime:
    """The Monday, 00:00 UTC, with which the week of a time begins."""
    there = moment.astimezone(UTC)
    midnight = there.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=there.weekday())


def weeks_from(moment: datetime, ahead: int) -> Iterator[tuple[datetime, datetime]]:
    """The week of a time and those after it, each by its beginning and end."""
    start = week_of(moment)
    for number in range(ahead + 1):
        yield start + number * WEEK, start + (number + 1) * WEEK


def read_partitions(connection: Connection, schema: str) -> list[Partition]:
    """The partitions of the payloads, in the order of their time, the default one last.

    Args:
        connection: in a transaction of `Patience`, which has times written in UTC.
        schema: of the ledger.
    """
    rows = connection.execute(_PARTITIONS, {"schema": schema}).all()
    # One that somebody drops at this moment has no bounds any more.
    found = [_partition(name, bound, size) for name, bound, size in rows if bound is not None]
    first = datetime.min.replace(tzinfo=UTC)
    return sorted(found, key=lambda each: (each.is_default, each.start or first, each.name))


def may_make(connection: Connection, schema: str) -> bool:
    """Whether the role owns the payloads, which is what PostgreSQL asks of whoever makes or drops partitions."""
    return bool(connection.scalar(_OWNS, {"schema": schema}))


def make_partitions(engine: Engine, schema: str, *, ahead: int = AHEAD, patience: Patience = PATIENCE) -> Made:
    """See to it that this week and the next ones have a partition. Safe at any time, from several places at once.

    Receivers are not held up: the new table is made first, and attached under a lock that only the default partition
    feels, for as long as it takes to look through it; longer than `patience` allows, and it is given up.
    https://www.postgresql.org/docs/current/sql-altertable.html#SQL-ALTERTABLE-ATTACH-PARTITION

    Args:
        engine: synchronous, or the synchronous side of an asynchronous one.
        schema: of the ledger.
        ahead: weeks after the present one.
        patience: how long a step may take.

    Raises:
        SetupError: if the role may not make partitions, with what to do.
        Busy: if the tables were in use all the time.
    """
    made = Made()

    def look(connection: Connection) -> list[tuple[datetime, datetime]]:
        now: datetime = connection.execute(text("SELECT pg_catalog.now()")).scalar_one()
        there = read_partitions(connection, schema)
        missing = [week for week in weeks_from(now, ahead) if not any(each.overlaps(*week) for each in there)]
        if missing and not may_make(connection, schema):
            raise SetupError(
                "this role does not own the payloads and so cannot make partitions for them (they go to the default "
                f"partition until it does): run {command('db partitions', schema)} as the owner, once a week"
            )
        made.there = ahead + 1 - len(missing)
        made.left_out = [start for start, end in missing if _is_in_default(connection, schema, start, end)]
        return [(start, end) for start, end in missing if start not in made.left_out]

    for start, end in patience.step(engine, look, "partitions were not made"):

        def work(connection: Connection, start: datetime = start, end: datetime = end) -> str | None:
            return _make(connection, schema, start, end)

        try:
            name = patience.step(engine, work, f"the partition of the week of {start:%Y-%m-%d} was not made")
        except DBAPIError as error:
            if sqlstate(error) == NOT_EMPTY:
                made.left_out.append(start)
            elif sqlstate(error) in DONE_BY_ANOTHER:
                made.there += 1
            else:
                raise
        else:
            if name is None:
                made.by_another = True
                break
            made.made.append(name)
    return made


def _is_in_default(connection: Connection, schema: str, start: datetime, end: datetime) -> bool:
    """Whether there are payloads of that time, of which no partition is: then it would be refused."""
    p = tables(schema).payloads.c
    return bool(connection.scalar(select(exists().where(p.received_at >= start, p.received_at < end))))


def _make(connection: Connection, schema: str, start: datetime, end: datetime) -> str | None:
    if not is_first(connection, schema, "partitions"):
        return None
    name = f"payloads_{start:%Y%m%d}"
    names = {
        "payloads": f"{quoted(schema)}.payloads",
        "new": f"{quoted(schema)}.{quoted(name)}",
        "start": f"{start:%Y-%m-%d} 00:00:00+00",
        "end": f"{end:%Y-%m-%d} 00:00:00+00",
    }
    for statement in (
        "CREATE TABLE %(new)s (LIKE %(payloads)s INCLUDING DEFAULTS INCLUDING STORAGE)",
        "ALTER TABLE %(payloads)s ATTACH PARTITION %(new)s FOR VALUES FROM ('%(start)s') TO ('%(end)s')",
    ):
        connection.execute(DDL(statement, context=names))  # type: ignore[no-untyped-call]
    return name


def _partition(name: str, bound: str, size: int) -> Partition:
    if bound == DEFAULT:
        return Partition(name, None, None, size, is_default=True)
    found = _BOUNDS.fullmatch(bound)
    if found is None:
        # By several columns, perhaps: none of ours. It is neither made again nor dropped.
        return Partition(name, None, None, size)
    return Partition(name, _moment(found[1]), _moment(found[2]), size)


def _moment(written: str | None) -> datetime | None:
    try:
        return None if written is None else datetime.fromisoformat(written).astimezone(UTC)
    except ValueError:
        return None  # infinity, or a year that Python does not know
