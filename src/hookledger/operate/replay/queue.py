"""One batch of a replay: deliveries become pending, and the record tells of it, in one transaction or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    DateTime,
    Table,
    bindparam,
    cast,
    column,
    delete,
    func,
    literal,
    literal_column,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import insert as insert_or_skip

from hookledger.ledger.arrays import BIGINTS
from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import is_one_of
from hookledger.operate.replay.forget import forget_effects
from hookledger.operate.replay.records import Replay, ReplayState
from hookledger.operate.replay.selection import Kind, has_bytes, there_is
from hookledger.operate.retention.brief import end_if_silent, keep_there

HEARD_WITHIN = timedelta(minutes=1)


class Batch(NamedTuple):
    """What one batch did.

    Args:
        state: how the replay stands; unless it is running, nothing was done.
        ids: of the deliveries that are pending now.
        is_last: whether there are no more.
    """

    state: ReplayState
    ids: tuple[int, ...]
    is_last: bool


def queue(connection: Connection, t: Tables, replay: Replay, most: int) -> Batch:
    """Make the next deliveries of a replay pending. Nothing is queued twice: the record's row is locked meanwhile, and
    its cursor moves in the same transaction.

    Args:
        connection: in a transaction of this batch alone.
        t: the tables.
        replay: as it was begun; where it is now is read anew.
        most: deliveries to look at.
    """
    end_if_silent(connection)
    r = t.replays.c
    place = select(r.state, func.coalesce(r.cursor_id, 0), r.until_id).where(r.id == replay.id).with_for_update()
    state, cursor, until = connection.execute(place).one()
    if state != ReplayState.RUNNING.value:
        return Batch(ReplayState(state), (), is_last=False)
    connection.exec_driver_sql("SET LOCAL jit = off")
    keep_there(connection, t.schema)
    d = t.deliveries.c
    there = has_bytes(t, d.received_at, d.payload_id, d.id)
    elsewhere = _is_in_another(connection, t, replay)
    found = connection.execute(
        replay.selection.rows(t, most, there.label("there"), elsewhere.label("elsewhere")),
        {"after": cursor, "until": until},
    ).all()
    dead = [row.id for row in found if row.dead and row.there]
    settled = [row.id for row in found if not row.dead and row.there and not row.elsewhere]
    ids = [*(_revive(connection, t, dead) if dead else ()), *(_reopen(connection, t, settled) if settled else ())]
    if replay.kind is Kind.FORGET and ids and replay.selection.matching is not None:
        forget_effects(connection, t, replay.selection.matching.handler, ids)
    if ids:
        _note(connection, t, replay, ids)
    moved = {"cursor_id": found[-1].id if found else until, "queued": r.queued + literal(len(ids))}
    at = func.jsonb_build_object(literal_column("'batch_at'"), func.clock_timestamp())
    connection.execute(
        update(t.replays)
        .where(r.id == replay.id)
        .values(**moved, result=func.coalesce(r.result, literal({}, r.result.type)).op("||")(at))
    )
    return Batch(ReplayState.RUNNING, tuple(ids), is_last=len(found) < most)


def _is_in_another(connection: Connection, t: Tables, replay: Replay) -> Any:
    """Whether another replay that runs has had the settled delivery already; what forgets effects does so all the same.

    One that has not been heard of for a minute has lost its process.
    """
    r, replayed = t.replays.c, t.replayed.c
    heard = cast(r.result["batch_at"].astext, DateTime(timezone=True))
    running = select(r.id).where(
        r.state == ReplayState.RUNNING.value, r.id != replay.id, heard > func.clock_timestamp() - HEARD_WITHIN
    )
    others = list(connection.execute(running).scalars())
    if not others or replay.kind is Kind.FORGET:
        return literal_column("false")
    return there_is(replayed.delivery_id == t.deliveries.c.id, replayed.replay_id.in_(others))


def _revive(connection: Connection, t: Tables, ids: Sequence[int]) -> list[int]:
    """Dead letters become pending; of two that want the same one, one gets it."""
    dead = t.dead_letters
    held = (
        select(dead.c.delivery_id)
        .where(is_one_of(dead.c.delivery_id, "ids"))
        .order_by(dead.c.delivery_id)
        .with_for_update()
        .cte("held")
        .prefix_with("MATERIALIZED")
    )
    gone = (
        delete(dead).where(dead.c.delivery_id.in_(select(held.c.delivery_id))).returning(dead.c.delivery_id).cte("gone")
    )
    return _make_pending(connection, t.pending, select(gone.c.delivery_id, true()).order_by(gone.c.delivery_id), ids)


def _reopen(connection: Connection, t: Tables, ids: Sequence[int]) -> list[int]:
    """Settled deliveries become pending; one that is so already belongs to whoever made it so."""
    given = (
        func.unnest(bindparam("ids", type_=BIGINTS))
        .table_valued(column("id", BigInteger), name="given")
        .render_derived()
    )
    queued = _make_pending(connection, t.pending, select(given.c.id, true()).order_by(given.c.id), ids)
    # Between our look and our row it may have been replayed by another, failed, and died.
    connection.execute(delete(t.dead_letters).where(t.dead_letters.c.delivery_id.in_(queued)))
    return queued


def _make_pending(connection: Connection, pending: Table, rows: Any, ids: Sequence[int]) -> list[int]:
    statement = (
        insert_or_skip(pending)
        .from_select(["delivery_id", "revisited"], rows)
        .on_conflict_do_nothing()
        .returning(pending.c.delivery_id)
    )
    return sorted(connection.execute(statement, {"ids": list(ids)}).scalars())


def _note(connection: Connection, t: Tables, replay: Replay, ids: Sequence[int]) -> None:
    given = (
        func.unnest(bindparam("ids", type_=BIGINTS))
        .table_valued(column("id", BigInteger), name="given")
        .render_derived()
    )
    rows = select(literal(replay.id, BigInteger), given.c.id)
    statement = insert_or_skip(t.replayed).from_select(["replay_id", "delivery_id"], rows).on_conflict_do_nothing()
    connection.execute(statement, {"ids": list(ids)})
