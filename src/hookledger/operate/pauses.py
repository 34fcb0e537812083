"""Pausing a source or a handler, and resuming it.

While a source is paused its deliveries are received as ever, and none is handed to a handler. While a handler is paused
the other handlers of a delivery do their part, and the delivery stays pending. Nothing is charged with an attempt.
Each claim of a worker reads what is paused, so a pause holds for every worker, from the next batch on, and until it is
resumed, whatever is restarted meanwhile.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Engine, delete, exists, func, select, true, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import ReturningUpdate

from hookledger import storable
from hookledger.ledger.failure import is_hindrance
from hookledger.ledger.schema import Tables, tables
from hookledger.operate.locked import telling_who, wait_briefly

BATCH = 5000
LOOKING_SECONDS = 2
"""How long the effects are searched for the name of a handler, which no index finds."""


class PauseKind(enum.StrEnum):
    """What can be paused."""

    SOURCE = "source"
    HANDLER = "handler"


@dataclass(frozen=True, slots=True)
class Pause:
    """Something that is paused.

    Args:
        kind: source or handler.
        name: its name.
        since: when it was paused.
        who: by whom.
        reason: as was given.
    """

    kind: PauseKind
    name: str
    since: datetime
    who: str
    reason: str | None


def read_pauses(connection: Connection, schema: str) -> list[Pause]:
    """What is paused, the longest first."""
    p = tables(schema).pauses.c
    found = connection.execute(select(p.kind, p.name, p.since, p.who, p.reason).order_by(p.since, p.kind, p.name))
    return [Pause(PauseKind(kind), *rest) for kind, *rest in found]


def kinds_known(connection: Connection, schema: str, name: str) -> set[PauseKind]:
    """Whether the ledger knows a source of that name, and a handler. A handler without resource states is missed if
    none of its outcomes is found in two seconds."""
    t, name = tables(schema), storable.text(name)
    of_source = connection.scalar(select(exists().where(t.deliveries.c.source == name)))
    of_handler = connection.scalar(
        select(
            exists().where(t.resource_state.c.handler == name)
            | exists().where(t.failures.c.handler == name, t.failures.c.id > _recent(t))
        )
    )
    if not of_source and not of_handler:
        of_handler = _has_effects(connection, t, name)
    return {kind for kind, found in ((PauseKind.SOURCE, of_source), (PauseKind.HANDLER, of_handler)) if found}


def pause(engine: Engine, schema: str, kind: PauseKind, name: str, *, who: str, reason: str | None = None) -> bool:
    """Pause a source or a handler. Batches that are under way are finished.

    Returns:
        False if it was paused already, which is left as it is.
    """
    statement = (
        insert(tables(schema).pauses)
        .values(
            kind=kind.value,
            name=storable.text(name),
            who=storable.text(who),
            reason=None if reason is None else storable.text(reason),
        )
        .on_conflict_do_nothing()
        .returning(tables(schema).pauses.c.name)
    )
    with engine.begin() as connection:
        return connection.execute(statement).first() is not None


def resume(
    engine: Engine, schema: str, kind: PauseKind, name: str, *, progress: Callable[[int], None] | None = None
) -> tuple[bool, int]:
    """Resume it, and make due at once what was parked for it. Run again after it was interrupted, it does the rest.

    Which handlers a delivery has is not known here. So while other handlers are paused, what is parked for one of them
    may be made due as well; a worker that looks at it gives it back again, uncharged. Left where it is: what a paused
    source keeps back, and what the handler has done already.

    Args:
        engine: on the ledger's database.
        schema: of the ledger.
        kind: source or handler.
        name: its name.
        progress: told how many were made due so far, after each batch.

    Returns:
        Whether it was paused, and how many deliveries were made due.

    Raises:
        Locked: if a lock is waited for too long, such as that of a worker that was stopped while it parks something.
            The message says whether it is still paused.
    """
    # Not above: with them comes the receiver, which takes longer to import than anything here.
    from hookledger.operate.retention.brief import end_if_silent
    from hookledger.receive.announce import announce

    t, name = tables(schema), storable.text(name)
    stays = f"the {kind.value} {name} stays paused: "
    with telling_who(engine, schema, first=stays, rows_of=t.pauses.name), engine.begin() as connection:
        wait_briefly(connection)
        # Workers wait for this row.
        end_if_silent(connection)
        # Waits for those who park at this moment; whoever comes after finds no pause.
        gone = delete(t.pauses).where(t.pauses.c.kind == kind.value, t.pauses.c.name == name)
        was_paused = connection.execute(gone.returning(t.pauses.c.name)).first() is not None
        moment = connection.scalar(select(func.statement_timestamp()))
    total, last = 0, -1
    partly = f"the {kind.value} {name} is resumed, but not all that waited for it is due yet: "
    while True:
        with telling_who(engine, schema, first=partly), engine.begin() as connection:
            wait_briefly(connection)
            made_due = [row[0] for row in connection.execute(_make_due(t, kind, name, moment, last))]
        if not made_due:
            break
        total, last = total + len(made_due), max(made_due)
        if progress is not None:
            progress(total)
    with engine.begin() as connection:
        announce(connection, schema)
    return was_paused, total


def _make_due(t: Tables, kind: PauseKind, name: str, moment: datetime | None, last: int) -> ReturningUpdate[int]:
    p, d = t.pending.c, t.deliveries.c
    if kind is PauseKind.SOURCE:
        meant: ColumnElement[bool] = d.source == name
    else:
        # What its source keeps back would only be parked again; so would what the handler has done, for another one.
        e, is_handler = t.effects.c, t.pauses.c.kind == PauseKind.HANDLER.value
        done = exists().where(e.source == d.source, e.event_id == d.event_id, e.handler == name)
        by_source = exists().where(t.pauses.c.kind == PauseKind.SOURCE.value, t.pauses.c.name == d.source)
        meant = ~by_source & ~(exists().where(is_handler) & done)
    chosen = (
        select(p.delivery_id)
        .join_from(t.pending, t.deliveries, d.id == p.delivery_id)
        .where(p.parked, p.delivery_id > last, meant)
        .order_by(p.delivery_id)
        .limit(BATCH)
        .with_for_update(of=t.pending, skip_locked=True)
        .cte("chosen")
        .prefix_with("MATERIALIZED")
    )
    return (
        update(t.pending)
        # One time for all, so that they keep their order.
        .values(due_at=moment, parked=False)
        .where(p.delivery_id == chosen.c.delivery_id)
        .returning(p.delivery_id)
    )


def _recent(t: Tables) -> ColumnElement[int]:
    newest = select(func.coalesce(func.max(t.failures.c.id), 0)).scalar_subquery()
    return newest - 10_000


def _has_effects(connection: Connection, t: Tables, name: str) -> bool:
    try:
        with connection.begin_nested():
            connection.execute(select(func.set_config("statement_timeout", f"{LOOKING_SECONDS}s", true())))
            found = connection.scalar(select(exists().where(t.effects.c.handler == name)))
            connection.execute(select(func.set_config("statement_timeout", "0", true())))
            return bool(found)
    except DBAPIError as error:
        if not is_hindrance(error):
            raise
        return False
