"""Erasing: what a request said goes for good, that it came stays.

Body, headers and state are removed, and the texts of errors, in which handlers may have repeated them. The key, the
digest, the outcomes and the watermark stay, so that a copy that comes later is known and nothing runs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, any_, func, literal, null, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from hookledger import storable
from hookledger.ledger.arrays import BIGINTS
from hookledger.ledger.arrays import rows as unnested
from hookledger.ledger.schema import Tables, tables
from hookledger.operate.filters import Filter
from hookledger.operate.retention.brief import Patience, keep_unsettled
from hookledger.operate.retention.prune import require_owner

PATIENCE = Patience(statement=5.0)
STATES_WITHIN = 300.0
"""Seconds."""
BATCH = 50
NEAR = 2_000
"""Ids, within which those of one request are looked for, to either side."""
ERASED = "erased"
"""What stands in place of the text of an error."""
NOTHING = b""


@dataclass(slots=True)
class Erased:
    """What a run has erased, or with `dry_run` would.

    Args:
        deliveries: that were erased.
        with_them: further deliveries, that came in the same requests: their bytes cannot be told apart.
        pending: deliveries that were left, because they are pending, or came together with one that is.
        states: resource states that were emptied.
    """

    deliveries: int = 0
    with_them: int = 0
    pending: int = 0
    states: int = 0


Progress = Callable[[Erased], None]


def erase(
    engine: Engine,
    schema: str,
    wanted: Filter,
    *,
    who: str,
    dry_run: bool = False,
    patience: Patience = PATIENCE,
    progress: Progress = lambda erased: None,
) -> Erased:
    """Erase deliveries for good.

    What is pending is left: it would run on nothing. Let it settle, and erase again.

    Args:
        engine: synchronous; its role owns the tables.
        schema: of the ledger.
        wanted: which deliveries. If it names a resource, the states of that resource are emptied, else those that one
            of these deliveries set.
        who: is recorded with each.
        dry_run: count only.
        patience: how long a step may hold up others.
        progress: is told after each batch.

    Raises:
        SetupError: if the role may not.
        Busy, Stopped: what was erased so far stands; erasing again goes on from there.
    """
    require_owner(engine, schema, patience, to_run="erase")
    erased, after = Erased(), 0
    while True:

        def work(connection: Connection, after: int = after) -> tuple[int | None, Erased]:
            return _batch(connection, schema, wanted, who, after, dry_run=dry_run)

        last, done = patience.step(engine, work, "the deliveries were not erased")
        if last is None:
            break
        after = last
        erased.deliveries += done.deliveries
        erased.with_them += done.with_them
        erased.pending += done.pending
        progress(erased)

    def empty(connection: Connection) -> int:
        emptied = 0 if dry_run else _empty_states(connection, tables(schema))
        return emptied + (_empty_resource(connection, schema, wanted, dry_run=dry_run) if wanted.resource else 0)

    # It reads all states, but locks only those that it empties.
    erased.states = replace(patience, statement=STATES_WITHIN).step(engine, empty, "the states were not emptied")
    return erased


def _batch(
    connection: Connection, schema: str, wanted: Filter, who: str, after: int, *, dry_run: bool
) -> tuple[int | None, Erased]:
    t = tables(schema)
    d = t.deliveries.c
    meant = wanted.apply(select(d.id, d.received_at, d.payload_id), schema)
    rows = connection.execute(meant.where(d.id > after).order_by(d.id).limit(BATCH)).all()
    if not rows:
        return None, Erased()
    ids = {row.id for row in rows}
    payloads = {(row.received_at, row.payload_id) for row in rows}
    sharing = _of_requests(connection, t, rows)
    if not dry_run:
        keep_unsettled(connection, schema)
    is_pending = set(
        connection.scalars(
            select(t.pending.c.delivery_id).where(_is_of(t.pending.c.delivery_id, [row.id for row in sharing]))
        )
    )
    spared = {(row.received_at, row.payload_id) for row in sharing if row.id in is_pending}
    going = [row for row in sharing if (row.received_at, row.payload_id) not in spared]
    before = set(
        connection.scalars(
            select(t.erased.c.delivery_id).where(_is_of(t.erased.c.delivery_id, [row.id for row in going]))
        )
    )
    new = [row.id for row in going if row.id not in before]
    done = Erased(
        deliveries=sum(1 for id in new if id in ids),
        with_them=sum(1 for id in new if id not in ids),
        pending=sum(1 for row in rows if (row.received_at, row.payload_id) in spared),
    )
    every = [row.id for row in going]
    if not dry_run:
        _overwrite(connection, t, payloads - spared, every)
        if new:
            connection.execute(
                insert(t.erased).on_conflict_do_nothing(),
                [{"delivery_id": id, "who": storable.text(who)} for id in new],
            )
    return rows[-1].id, done


def _of_requests(connection: Connection, t: Tables, rows: Sequence[Any]) -> list[Any]:
    """All deliveries that came in the same requests as these. Their ids lie close together, for they were drawn by one
    statement; nothing else leads from a request to its deliveries."""
    d = t.deliveries.c
    near = unnested("near", id="bigint", received_at="moment", payload_id="bigint")
    query = (
        select(d.id, d.received_at, d.payload_id)
        .join_from(
            near,
            t.deliveries,
            d.id.between(near.c.id - NEAR, near.c.id + NEAR)
            & (d.payload_id == near.c.payload_id)
            & (d.received_at == near.c.received_at),
        )
        .distinct()
    )
    found: dict[int, Any] = {}
    looked_from: list[Any] = list(rows)
    while looked_from:
        names = ("id", "received_at", "payload_id")
        given = {f"near_{name}": [getattr(row, name) for row in looked_from] for name in names}
        new = [row for row in connection.execute(query, given) if row.id not in found]
        found.update({row.id: row for row in new})
        # A request of very many: on from the outermost ones.
        ends: dict[int, list[Any]] = {}
        for row in sorted(new, key=lambda each: int(each.id)):
            ends.setdefault(row.payload_id, []).append(row)
        looked_from = [end for of_one in ends.values() if len(of_one) > 1 for end in (of_one[0], of_one[-1])]
    return [found[id] for id in sorted(found)]


def _overwrite(connection: Connection, t: Tables, payloads: set[tuple[Any, int]], ids: list[int]) -> None:
    if not ids:
        return
    p, r = t.payloads.c, t.redeliveries.c
    copies = connection.execute(
        select(r.received_at, r.payload_id).where(_is_of(r.delivery_id, ids), r.payload_id.is_not(None))
    ).all()
    gone = [*payloads, *[tuple(row) for row in copies]]
    connection.execute(update(t.payloads).where(tuple_(p.received_at, p.id).in_(gone)).values(headers=[], body=NOTHING))
    connection.execute(update(t.redeliveries).where(_is_of(r.delivery_id, ids)).values(headers=[]))
    for errors in (t.failures, t.dead_letters):
        connection.execute(update(errors).where(_is_of(errors.c.delivery_id, ids)).values(error=ERASED))


def _is_of(column: ColumnElement[int], ids: Sequence[int]) -> ColumnElement[bool]:
    """Whether it is one of the ids; given as one parameter, for they may be more than a statement takes."""
    return column == any_(literal(list(ids), BIGINTS))


def _empty_states(connection: Connection, t: Tables) -> int:
    """The states that an erased delivery set as a snapshot. What several added to is nobody's in particular."""
    s = t.resource_state.c
    emptied = connection.execute(
        update(t.resource_state)
        .where(s.delivery_id.in_(select(t.erased.c.delivery_id)), s.version.is_not(None), s.state.is_not(None))
        .values(state=null())
    )
    return emptied.rowcount


def _empty_resource(connection: Connection, schema: str, wanted: Filter, *, dry_run: bool) -> int:
    t = tables(schema)
    s = t.resource_state.c
    meant = [s.resource == storable.key(wanted.resource or ""), s.state.is_not(None)]
    if wanted.source is not None:
        meant.append(s.source == storable.text(wanted.source))
    if dry_run:
        counted = select(func.count(literal(1))).select_from(t.resource_state).where(*meant)
        return int(connection.execute(counted).scalar_one())
    return connection.execute(update(t.resource_state).where(*meant).values(state=null())).rowcount
