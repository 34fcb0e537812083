"""Letting in what was refused, through the same door and with the time at which it came; or discarding it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, delete, func, select, update
from sqlalchemy.exc import DBAPIError

from hookledger.errors import HookledgerError, Refused, Unavailable
from hookledger.http import Response
from hookledger.inbox import Inbox
from hookledger.ledger.schema import tables
from hookledger.operate.door import Earlier, accept_earlier, accept_unverified, let_in
from hookledger.operate.quarantine.find import Kept, Wanted, following
from hookledger.receive.accept import Accepted
from hookledger.receive.announce import announce

BATCH = 50


class Verdict(enum.StrEnum):
    """What became of a refused request."""

    LET_IN = "let in"
    KNOWN = "known"
    EMPTY = "empty"
    REFUSED = "refused"
    HEAD_ONLY = "head only"
    ALREADY = "already let in"


@dataclass(frozen=True, slots=True)
class Released:
    """What became of one refused request.

    Args:
        id: of it.
        verdict: let in; known, if the ledger has its events already; empty, if it carries none; refused again; head
            only, if its body was too large to be kept; or let in by somebody else meanwhile.
        says: why, in a sentence.
        delivery_ids: what it is now.
    """

    id: int
    verdict: Verdict
    says: str = ""
    delivery_ids: tuple[int, ...] = ()


def release(
    engine: Engine,
    inbox: Inbox,
    wanted: Wanted,
    *,
    unverified: bool = False,
    dry_run: bool = False,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Released]:
    """Verify refused requests again with the secrets of today, and let in those that do: in the order in which they
    came, each with its time, from which its age counts too. Committed batch by batch.

    Args:
        engine: of the database with the ledger.
        inbox: the sources as they are now.
        wanted: which; those that were let in before are left out.
        unverified: let in what does not verify as well. Handlers then run on what anybody may have sent.
        dry_run: say what would become of them.
        stopping: asked before each batch whether to end.

    Raises:
        Unavailable: if a provider's keys cannot be had; what was let in stands.
    """
    open_only = Wanted(wanted.ids, wanted.source, wanted.reason, wanted.since, wanted.until, released=False)
    after, came = 0, False
    while not stopping():
        with engine.connect() as connection:
            batch = following(connection, inbox.schema, open_only, after=after, limit=BATCH)
        if not batch:
            break
        after = batch[-1].id
        judged = [(each, _judged(inbox, each, unverified=unverified)) for each in batch]
        fit = [(each, found) for each, found in judged if isinstance(found, Earlier)]
        with engine.connect() as connection, connection.begin() as transaction:
            done = _let_in(connection, inbox.schema, fit)
            if dry_run:
                transaction.rollback()
        came = came or any(each.verdict is Verdict.LET_IN for each in done.values())
        for each, found in judged:
            yield done[each.id] if isinstance(found, Earlier) else found
    if came and not dry_run:
        with suppress(DBAPIError), engine.begin() as connection:
            announce(connection, inbox.schema)


def discard(engine: Engine, schema: str, wanted: Wanted, *, dry_run: bool = False) -> int:
    """Remove refused requests, or count them. How many they are."""
    t = tables(schema)
    with engine.connect() as connection, connection.begin():
        if dry_run:
            counted = select(func.count()).select_from(t.quarantine).where(*wanted.conditions(t))
            return int(connection.execute(counted).scalar_one())
        return connection.execute(delete(t.quarantine).where(*wanted.conditions(t))).rowcount


def _judged(inbox: Inbox, kept: Kept, *, unverified: bool) -> Earlier | Released:
    if not kept.is_whole:
        says = f"its body of {kept.size:,} bytes was not kept: ask the sender to send it again"
        return Released(kept.id, Verdict.HEAD_ONLY, says)
    origin = f"quarantine {kept.id}"
    try:
        found = _accepted(inbox, kept)
    except Unavailable:
        raise
    except HookledgerError as error:
        if not unverified or kept.source not in inbox.sources:
            return Released(kept.id, Verdict.REFUSED, str(error))
        found = accept_unverified(inbox.source(kept.source), kept.request)
        origin += ", not verified"
    if isinstance(found, Response) or not found.events:
        return Released(kept.id, Verdict.EMPTY, "it carries no event")
    return Earlier(found, kept.at, origin)


def _accepted(inbox: Inbox, kept: Kept) -> Accepted | Response:
    try:
        return accept_earlier(inbox.source(kept.source), kept.request, kept.at)
    except HookledgerError:
        raise
    except Exception as error:
        # A verifier of the user's own that breaks has not verified.
        raise Refused(f"verifying it failed with {type(error).__name__}") from error


def _let_in(connection: Connection, schema: str, fit: list[tuple[Kept, Earlier]]) -> dict[int, Released]:
    q = tables(schema).quarantine
    ids = [kept.id for kept, _ in fit]
    locked = select(q.c.id).where(q.c.id.in_(ids), q.c.released_at.is_(None)).order_by(q.c.id).with_for_update()
    still = set(connection.scalars(locked)) if ids else set()
    mine = [(kept, earlier) for kept, earlier in fit if kept.id in still]
    done = {id: Released(id, Verdict.ALREADY, "somebody else let it in, or discarded it") for id in ids}
    lets = let_in(connection, schema, [earlier for _, earlier in mine])
    for (kept, _), let in zip(mine, lets, strict=True):
        connection.execute(
            update(q).where(q.c.id == kept.id).values(released_at=func.now(), delivery_ids=list(let.ids))
        )
        if let.new:
            done[kept.id] = Released(kept.id, Verdict.LET_IN, "", let.ids)
        else:
            says = "the ledger has it already, as the sender sent it again"
            done[kept.id] = Released(kept.id, Verdict.KNOWN, says, let.ids)
    return done
