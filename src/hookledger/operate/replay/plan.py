"""What a replay would do, said before it does anything; nothing is changed by making a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    Connection,
    Engine,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    case,
    cast,
    column,
    exists,
    func,
    literal,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.exc import DBAPIError

from hookledger.handlers import NO_HANDLER, Handler
from hookledger.handlers import Kind as HandlerKind
from hookledger.inbox import Inbox
from hookledger.ledger.failure import CANCELLED, sqlstate
from hookledger.ledger.schema import Tables, tables
from hookledger.operate.filters import State
from hookledger.operate.replay.selection import Kind, Selection, has_bytes

CHUNK = 20_000
"""Deliveries that one statement of a plan looks at."""
BOUND = 10_000
"""What is only told, and not acted on, is counted up to here."""
PATIENCE = "2s"
"""How long such a count may take."""
TEXTS = ARRAY(Text)


@dataclass(frozen=True, slots=True)
class Plan:
    """What would become of the deliveries that a replay is about.

    Args:
        made_at: when, by the database's clock.
        until_id: deliveries with higher ids came later, and are not in it.
        dead: dead letters that would be pending again.
        settled: settled deliveries that would be pending again.
        run: of both, those for which a handler would run.
        stale: those that every handler left would refuse, since a newer version was applied.
        skipped: those whose effects exist, so that nothing runs.
        unhandled: those that no handler matches.
        gone: those whose bytes retention or an erasure has taken; they are not touched.
        uncertain: of `run`, those whose order the handler reads from the body, so that they may turn out stale.
        left_settled: settled ones that match, and are left alone because nobody asked for them; None if counting them
            took too long. No more than 10,000 are counted.
        left_pending: pending ones that match; they run by themselves.
        knows_handlers: whether the inbox was known; else the plan goes by the effects and watermarks alone.
    """

    made_at: datetime
    until_id: int
    dead: int = 0
    settled: int = 0
    run: int = 0
    stale: int = 0
    skipped: int = 0
    unhandled: int = 0
    gone: int = 0
    uncertain: int = 0
    left_settled: int | None = 0
    left_pending: int | None = 0
    knows_handlers: bool = False

    @property
    def total(self) -> int:
        """How many would be made pending."""
        return self.dead + self.settled

    def as_document(self) -> dict[str, Any]:
        """As JSON can hold it; the time as ISO 8601 with zone."""
        return {**asdict(self), "made_at": self.made_at.isoformat(), "total": self.total}

    @classmethod
    def of_document(cls, document: dict[str, Any]) -> Plan:
        """The plan of which `as_document` gave this."""
        read = {one.name: document[one.name] for one in fields(cls)}
        return cls(**{**read, "made_at": datetime.fromisoformat(read["made_at"])})


class Group(NamedTuple):
    """Deliveries that are alike, in the order of the columns of `groups`.

    Args:
        dead: whether they are dead letters; else settled.
        done: the handlers of which they have effects.
        below: the snapshot handlers that have applied something newer.
        there: whether their bytes are.
        size: how many.
        last: the highest id.
    """

    source: str
    event_type: str
    dead: bool
    done: Sequence[str]
    below: Sequence[str]
    there: bool
    size: int
    last: int


class _Counted(NamedTuple):
    """What a group adds to a plan."""

    what: str
    uncertain: bool = False


def make_plan(
    engine: Engine,
    schema: str,
    selection: Selection,
    *,
    inbox: Inbox | None = None,
    progress: Callable[[int], None] = lambda looked_at: None,
) -> Plan:
    """Look at every delivery that a replay is about, in short transactions, and count.

    Args:
        engine: of the ledger's database.
        schema: where the ledger is.
        selection: the deliveries.
        inbox: tells which handlers there are; without it the plan goes by what the ledger knows.
        progress: told how many were looked at so far.

    Raises:
        DBAPIError: if the database refuses.
    """
    t = tables(schema)
    counts = dict.fromkeys(("dead", "settled", "run", "stale", "skipped", "unhandled", "gone", "uncertain"), 0)
    with engine.connect() as connection:
        with _reading(connection):
            made_at, until = connection.execute(
                select(func.clock_timestamp(), select(func.coalesce(func.max(t.deliveries.c.id), 0)).scalar_subquery())
            ).one()
            snapshots = _snapshot_handlers(connection, t, inbox)
        statement = groups(t, selection)
        after = looked_at = 0
        while True:
            with _reading(connection):
                # The estimate of a page of a large table invites plans that are compiled and read all of it.
                connection.exec_driver_sql("SET LOCAL jit = off")
                parameters = {"after": after, "until": until, "snapshots": snapshots}
                found = [Group._make(row) for row in connection.execute(statement, parameters)]
            for group in found:
                counted = classify(group, inbox, selection)
                counts[counted.what] += group.size
                counts["uncertain"] += group.size if counted.uncertain else 0
                if counted.what != "gone":
                    counts["dead" if group.dead else "settled"] += group.size
            size = sum(group.size for group in found)
            looked_at += size
            progress(looked_at)
            if size < CHUNK:
                break
            after = max(group.last for group in found)
        asked_for_settled = State.SETTLED in selection.states or selection.filter.state is not None
        left_settled = 0 if asked_for_settled else _count(connection, t, selection, State.SETTLED)
        left_pending = 0 if selection.filter.state is not None else _count(connection, t, selection, State.PENDING)
    return Plan(
        made_at, int(until), **counts, left_settled=left_settled, left_pending=left_pending,
        knows_handlers=inbox is not None,
    )  # fmt: skip


def classify(group: Group, inbox: Inbox | None, selection: Selection) -> _Counted:
    """What would become of deliveries that are alike."""
    forgotten = {selection.matching.handler} if selection.kind is Kind.FORGET and selection.matching else set()
    done = set(group.done) - forgotten
    if inbox is None:
        return _without_inbox(group, done, forgotten)
    handlers = inbox.handlers_for(group.source, group.event_type)
    left = [handler for handler in handlers if done.isdisjoint((handler.name, *handler.aliases))]
    if not handlers:
        return _Counted("unhandled" if group.there else "gone")
    if not group.there:
        return _Counted("gone")
    if not left:
        return _Counted("skipped")
    if all(handler.name in group.below or not set(handler.aliases).isdisjoint(group.below) for handler in left):
        return _Counted("stale")
    return _Counted("run", uncertain=all(_orders_itself(handler) for handler in left))


def _without_inbox(group: Group, done: set[str], forgotten: set[str]) -> _Counted:
    if not group.there:
        return _Counted("gone")
    if forgotten:
        return _Counted("stale" if not forgotten.isdisjoint(group.below) else "run")
    if not group.dead:
        return _Counted("unhandled" if done <= {NO_HANDLER} else "skipped")
    return _Counted("stale" if group.below else "run")


def _orders_itself(handler: Handler) -> bool:
    return handler.kind is HandlerKind.SNAPSHOT and bool(handler.version or handler.resource)


def groups(t: Tables, selection: Selection) -> Select[Any]:
    """The next deliveries of a selection, counted by all that decides what becomes of them."""
    d, effect, state = t.deliveries.c, t.effects.c, t.resource_state.c
    chosen = (
        selection.rows(t, CHUNK, d.source, d.event_id, d.event_type, d.resource, d.version, d.received_at, d.payload_id)
        .cte("chosen")
        .prefix_with("MATERIALIZED")
    )
    done = func.array(
        select(effect.handler)
        .where(effect.source == chosen.c.source, effect.event_id == chosen.c.event_id)
        .order_by(effect.handler)
        .scalar_subquery()
    )
    looked_up = select(*chosen.c, done.label("done")).cte("looked_up").prefix_with("MATERIALIZED")
    c = looked_up.c
    names = (
        func.unnest(bindparam("snapshots", type_=TEXTS))
        .table_valued(column("name", Text), name="snapshot")
        .render_derived()
    )
    left = ~(names.c.name == any_(c.done))
    if selection.kind is Kind.FORGET and selection.matching is not None:
        left |= names.c.name == selection.matching.handler
    newer = (
        exists()
        .where(
            state.handler == names.c.name,
            state.source == c.source,
            state.resource == c.resource,
            func.cardinality(state.version) == func.cardinality(c.version),
            tuple_(state.version, state.delivery_id) > tuple_(c.version, c.id),
        )
        .correlate(looked_up, names)
    )
    below = func.array(
        select(names.c.name).where(left, newer).order_by(names.c.name).correlate(looked_up).scalar_subquery()
    )
    ordered = and_(c.resource.is_not(None), c.version.is_not(None))
    there = has_bytes(t, c.received_at, c.payload_id, c.id)
    columns = (
        c.source,
        c.event_type,
        c.dead,
        c.done,
        case((ordered, below), else_=cast(literal_column("'{}'"), TEXTS)).label("below"),
        there.label("there"),
    )
    row = select(*columns, c.id).subquery("row")
    kinds = [one for one in row.c if one.name != "id"]
    return select(*kinds, func.count(), func.max(row.c.id)).group_by(*kinds)


def _snapshot_handlers(connection: Connection, t: Tables, inbox: Inbox | None) -> list[str]:
    """Names of the snapshot handlers whose watermarks stand where the deliveries say; by the key's index."""
    if inbox is not None:
        usual = [
            handler
            for handler in inbox.handlers.values()
            if handler.kind is HandlerKind.SNAPSHOT and not _orders_itself(handler)
        ]
        return [name for handler in usual for name in (handler.name, *handler.aliases)]
    handler = t.resource_state.c.handler
    # A look into the index for each name, however many rows it has.
    first = select(func.min(handler).label("name")).cte("names", recursive=True)
    following = select(func.min(handler)).where(handler > first.c.name).scalar_subquery()
    names = first.union_all(select(following).where(first.c.name.is_not(None)))
    return list(connection.execute(select(names.c.name).where(names.c.name.is_not(None))).scalars())


def _count(connection: Connection, t: Tables, selection: Selection, state: State) -> int | None:
    """Those of another state that match otherwise, up to a bound; None if that takes too long."""
    d = t.deliveries.c
    pending = exists().where(t.pending.c.delivery_id == d.id)
    dead = exists().where(t.dead_letters.c.delivery_id == d.id)
    wanted = pending if state is State.PENDING else ~pending & ~dead
    some = select(literal(1)).select_from(t.deliveries).where(wanted, *selection.conditions(t)).limit(BOUND + 1)
    try:
        with _reading(connection):
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{PATIENCE}'")
            return int(connection.execute(select(func.count()).select_from(some.subquery())).scalar_one())
    except DBAPIError as error:
        if sqlstate(error) != CANCELLED:
            raise
        return None


@contextmanager
def _reading(connection: Connection) -> Iterator[None]:
    with connection.begin():
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        yield
