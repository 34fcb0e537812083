"""What becomes of the deliveries that a replay has made pending."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, any_, bindparam, func, literal, select

from hookledger.ledger.schema import Tables
from hookledger.ledger.statements import BIGINTS
from hookledger.operate.replay.records import Replay


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
    pending = select(p.delivery_id, p.last_error.is_not(None)).where(
        p.delivery_id == any_(bindparam("ids", type_=BIGINTS))
    )
    died = select(dead.delivery_id).where(dead.delivery_id == any_(bindparam("ids", type_=BIGINTS)))
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
    deliveries were skipped since all their effects existed, and how many are dead or still pending."""
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
    pending = select(literal(1)).where(t.pending.c.delivery_id == replayed.delivery_id).exists()
    dead = select(literal(1)).where(t.dead_letters.c.delivery_id == replayed.delivery_id).exists()
    counts = (
        select(
            func.count().filter(pending),
            func.count().filter(dead),
            func.count().filter(~pending & ~dead & ~touched.exists()),
        )
        .select_from(t.replayed)
        .join(t.deliveries, d.id == replayed.delivery_id)
        .where(ours)
    )
    for name, count in zip(("pending", "dead", "skipped"), connection.execute(counts).one(), strict=True):
        if count:
            found[name] = int(count)
    return found
