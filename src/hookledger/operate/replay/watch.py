"""What becomes of the deliveries that a replay has made pending."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, exists, func, literal, select

from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import is_one_of
from hookledger.operate.replay.records import Replay
from hookledger.operate.replay.selection import Kind, there_is


class Ends(NamedTuple):
    """How far some deliveries are.

    Args:
        settled: every handler has its outcome.
        failed: dead again, or an attempt failed and the next one is waited for.
        waiting: not tried yet, or being tried now.
    """

    settled: frozenset[int]
    failed: frozenset[int]
    waiting: frozenset[int]


def look(connection: Connection, t: Tables, ids: Iterable[int]) -> Ends:
    """How far these deliveries are; by their keys."""
    given = frozenset(ids)
    p, dead = t.pending.c, t.dead_letters.c
    pending = select(p.delivery_id, p.last_error.is_not(None)).where(is_one_of(p.delivery_id, "ids"))
    died = select(dead.delivery_id).where(is_one_of(dead.delivery_id, "ids"))
    parameters = {"ids": sorted(given)}
    # The pending ones first: a delivery that dies in between is found by the second look, and is not taken for settled.
    rows = connection.execute(pending, parameters).all()
    failed = {id_ for id_, has_failed in rows if has_failed} | set(connection.execute(died, parameters).scalars())
    waiting = {id_ for id_, _ in rows} - failed
    return Ends(given - failed - waiting, frozenset(failed), frozenset(waiting))


def in_flight(connection: Connection, t: Tables, replay: Replay, most: int) -> frozenset[int]:
    """Deliveries of a replay that is resumed which wait for their first attempt."""
    p, replayed = t.pending.c, t.replayed.c
    statement = (
        select(p.delivery_id)
        .join_from(t.pending, t.replayed, (replayed.delivery_id == p.delivery_id) & (replayed.replay_id == replay.id))
        .where(p.last_error.is_(None))
        .limit(most)
    )
    return frozenset(connection.execute(statement).scalars())


def outcomes(connection: Connection, t: Tables, replay: Replay) -> dict[str, int]:
    """What became of all deliveries of a replay: outcomes that its handlers have had since it began, how many
    deliveries were skipped since all their effects existed, and how many are dead, have failed and wait for their next
    attempt, or are still pending without having failed."""
    replayed, d, effect = t.replayed.c, t.deliveries.c, t.effects.c
    ours = replayed.replay_id == replay.id
    new = (
        select(effect.outcome, func.count(), func.count(d.id.distinct()))
        .join_from(t.replayed, t.deliveries, d.id == replayed.delivery_id)
        .join(t.effects, (effect.source == d.source) & (effect.event_id == d.event_id))
        .where(ours, effect.applied_at >= replay.started_at)
        .group_by(effect.outcome)
    )
    found = {outcome: int(count) for outcome, count, _ in connection.execute(new)}
    touched = (
        select(literal(1))
        .select_from(t.effects)
        .where(effect.source == d.source, effect.event_id == d.event_id, effect.applied_at >= replay.started_at)
    )
    p = t.pending.c
    pending = select(literal(1)).where(p.delivery_id == replayed.delivery_id).exists()
    failed = select(literal(1)).where(p.delivery_id == replayed.delivery_id, p.last_error.is_not(None)).exists()
    dead = select(literal(1)).where(t.dead_letters.c.delivery_id == replayed.delivery_id).exists()
    counts = (
        select(
            func.count().filter(pending & ~failed),
            func.count().filter(failed),
            func.count().filter(dead),
            func.count().filter(~pending & ~dead & ~touched.exists()),
        )
        .select_from(t.replayed)
        .join(t.deliveries, d.id == replayed.delivery_id)
        .where(ours)
    )
    for name, count in zip(("pending", "failed", "dead", "skipped"), connection.execute(counts).one(), strict=True):
        if count:
            found[name] = int(count)
    return found


def left_out(connection: Connection, t: Tables, replay: Replay) -> dict[str, int]:
    """How many deliveries of a replay nobody has worked on: `untouched` ones no worker has taken, `parked` ones wait
    for what is paused, and of a backfill `missed` ones were settled by workers that have no such handler."""
    p, replayed, d, effect = t.pending.c, t.replayed.c, t.deliveries.c, t.effects.c
    fresh = (p.attempts == 0) & p.last_error.is_(None)
    waiting = (
        select(func.count().filter(fresh & ~p.parked), func.count().filter(p.parked))
        .join_from(t.pending, t.replayed, replayed.delivery_id == p.delivery_id)
        .where(replayed.replay_id == replay.id)
    )
    untouched, parked = connection.execute(waiting).one()
    found = {"untouched": int(untouched), "parked": int(parked), "missed": 0}
    matching = replay.selection.matching
    if replay.kind is Kind.BACKFILL and matching is not None:
        has_effect = there_is(
            effect.source == d.source, effect.event_id == d.event_id, effect.handler.in_(matching.names)
        )
        settled = (
            select(func.count())
            .join_from(t.replayed, t.deliveries, d.id == replayed.delivery_id)
            .where(
                replayed.replay_id == replay.id,
                ~has_effect,
                ~exists().where(p.delivery_id == d.id),
                ~exists().where(t.dead_letters.c.delivery_id == d.id),
            )
        )
        found["missed"] = connection.execute(settled).scalar_one()
    return found
