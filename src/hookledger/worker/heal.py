"""Dead snapshots that no longer matter: closed as superseded once a newer one of the resource was applied (D7).

A look every ten seconds, by one slot at a time, at a bounded number of dead letters in the order of their ids; what it
costs does not depend on how many deliveries there are.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from hookledger.handlers import Handler, Kind
from hookledger.inbox import Inbox
from hookledger.ledger.arrays import version_text
from hookledger.ledger.failure import is_outage
from hookledger.ledger.healing import DeadRow, PayloadRow, healing
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import ClaimedRow, EffectKey, NewEffect, StateKey, Watermark
from hookledger.operate.retention.brief import end_if_silent
from hookledger.version import Version, comparable
from hookledger.worker.decide import higher
from hookledger.worker.outcome import Claimed, Outcome, Settled, told
from hookledger.worker.read import read_rank
from hookledger.worker.received import Received

logger = logging.getLogger(__name__)

EVERY = 10.0
"""Seconds between two looks of a worker."""
CHUNK = 200
CHUNKS = 5
"""How many dead letters a look takes in one transaction, and how many transactions it has at the most."""


class _Rank(NamedTuple):
    """Where a dead delivery stands for one handler."""

    key: StateKey
    version: Version


class Heal:
    """The looks of one worker; its slots share it.

    Args:
        inbox: the handlers.
        repository: of the ledger.
    """

    def __init__(self, inbox: Inbox, repository: Repository) -> None:
        self._inbox = inbox
        self._repository = repository
        self._statements = healing(inbox.schema)
        self._turn = threading.Lock()
        self._next = 0.0
        self._after = 0
        self._useful = any(handler.kind is Kind.SNAPSHOT for handler in inbox.handlers.values())

    def look(self, connection: Connection, now: float) -> list[Settled]:
        """Close what can be closed, if a look is due; what was closed, for observers.

        Args:
            connection: that of a slot, with no transaction open.
            now: seconds of a monotonic clock.

        Raises:
            DBAPIError: when the database is away.
        """
        if not self._useful or now < self._next or not self._turn.acquire(blocking=False):
            return []
        closed: list[Settled] = []
        try:
            for _ in range(CHUNKS):
                with connection.begin():
                    # Those who replay the dead letters must not wait for a worker that was stopped meanwhile.
                    end_if_silent(connection)
                    found, more = self._chunk(connection)
                closed += found
                if not more:
                    break
        except DBAPIError as error:
            if is_outage(error):
                raise
            logger.warning("could not look for dead letters to close: %s", str(error.orig).strip())
        finally:
            self._next = now + EVERY
            self._turn.release()
        if closed:
            logger.info("closed %d dead letters as superseded: newer snapshots were applied", len(closed))
        return closed

    def _chunk(self, connection: Connection) -> tuple[list[Settled], bool]:
        dead = self._statements.dead_after(connection, self._after, CHUNK)
        more = len(dead) == CHUNK
        self._after = dead[-1].id if more else 0
        candidates = self._candidates(connection, dead)
        if not candidates:
            return [], more
        ranks = {claimed.delivery.id: self._ranks(claimed, todo) for claimed, todo in candidates}
        keys = sorted(
            {rank.key for found in ranks.values() for rank in found or ()} | set(self._former(candidates, ranks))
        )
        watermarks = self._repository.read_states(connection, keys) if keys else {}
        effects: list[NewEffect] = []
        closing: dict[int, Claimed] = {}
        for claimed, todo in candidates:
            found = ranks[claimed.delivery.id]
            if found and all(
                _is_below(rank, claimed, _watermark(rank, handler, watermarks))
                for rank, handler in zip(found, todo, strict=True)
            ):
                closing[claimed.delivery.id] = claimed
                effects += [_superseded(claimed, rank) for rank in found]
        gone = self._statements.supersede(connection, effects) if effects else set()
        return [
            told(closing[effect.delivery_id].delivery, effect.handler, effect.outcome)
            for effect in effects
            if effect.delivery_id in gone
        ], more

    def _candidates(self, connection: Connection, dead: Sequence[DeadRow]) -> list[tuple[Claimed, tuple[Handler, ...]]]:
        """Those for which only snapshot handlers are left to run, with these."""
        matched = [(row, self._inbox.handlers_for(row.source, row.event_type)) for row in dead]
        matched = [(row, handlers) for row, handlers in matched if any(one.kind is Kind.SNAPSHOT for one in handlers)]
        if not matched:
            return []
        done = self._repository.look_up(connection, [(row.source, row.event_id) for row, _ in matched])
        left = [(row, tuple([one for one in handlers if not _is_done(row, one, done)])) for row, handlers in matched]
        left = [(row, todo) for row, todo in left if todo and all(one.kind is Kind.SNAPSHOT for one in todo)]
        reading = [row for row, todo in left if any(one.resource or one.version for one in todo)]
        wanted = sorted({(row.received_at, row.payload_id) for row in reading})
        payloads = self._statements.common_payloads(connection, wanted) if wanted else {}
        unread = {row.id for row in reading if row.payload_id not in payloads}
        return [(self._claimed(row, payloads), todo) for row, todo in left if row.id not in unread]

    def _claimed(self, row: DeadRow, payloads: dict[int, PayloadRow]) -> Claimed:
        payload = payloads.get(row.payload_id, PayloadRow(row.payload_id, "[]", b""))
        claimed = ClaimedRow(
            *row[:-1],
            headers=payload.headers,
            size=len(payload.body),
            body=payload.body,
            attempts=row.attempts,
            last_error=None,
            crashed=False,
            revisited=True,
            look_from=row.received_at,
            synchronous_commit="",
        )
        return Received(self._inbox, [claimed], {}).claimed(claimed)

    def _ranks(self, claimed: Claimed, todo: Sequence[Handler]) -> list[_Rank] | None:
        """Where the delivery stands for each handler; None if that cannot be told, as may be why it died."""
        try:
            read = [(handler, *read_rank(claimed, handler)) for handler in todo]
        except Exception:
            return None
        return [
            _Rank((handler.name, claimed.delivery.source, resource), version) for handler, resource, version in read
        ]

    def _former(
        self, candidates: Sequence[tuple[Claimed, tuple[Handler, ...]]], ranks: dict[int, list[_Rank] | None]
    ) -> list[StateKey]:
        return [
            (alias, *rank.key[1:])
            for claimed, todo in candidates
            for handler, rank in zip(todo, ranks[claimed.delivery.id] or (), strict=False)
            for alias in handler.aliases
        ]


def _is_done(row: DeadRow, handler: Handler, done: set[EffectKey]) -> bool:
    return any((name, row.source, row.event_id) in done for name in (handler.name, *handler.aliases))


def _watermark(rank: _Rank, handler: Handler, watermarks: dict[StateKey, Watermark]) -> Watermark:
    found = watermarks.get(rank.key, Watermark(None, None))
    for alias in handler.aliases:
        found = higher(found, watermarks.get((alias, *rank.key[1:]), Watermark(None, None)))
    return found


def _is_below(rank: _Rank, claimed: Claimed, watermark: Watermark) -> bool:
    if watermark.version is None or not comparable(rank.version, watermark.version):
        return False
    return (rank.version, claimed.delivery.id) < (watermark.version, watermark.delivery_id or 0)


def _superseded(claimed: Claimed, rank: _Rank) -> NewEffect:
    delivery = claimed.delivery
    return NewEffect(
        delivery.source,
        delivery.event_id,
        rank.key[0],
        delivery.id,
        Outcome.SUPERSEDED.value,
        version_text(rank.version),
    )
