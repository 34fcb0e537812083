"""The whole story of one delivery: its request, what was tried, what came of it, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, Text, any_, cast, func, literal, select, union_all

from hookledger import storable
from hookledger.ledger.arrays import version_of
from hookledger.ledger.schema import Tables, tables
from hookledger.operate.filters import Filter
from hookledger.operate.find import Found, find
from hookledger.operate.masking import mask_headers, scrub, secret_values
from hookledger.operate.pauses import Pause, PauseKind, read_pauses
from hookledger.outcomes import Outcome
from hookledger.version import Version

MOST_ATTEMPTS = 100
MOST_COPIES = 50
NEIGHBOURS = 500
"""Deliveries of the resource, before and after this one, among which the one that set the watermark is looked for."""

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """The same event, sent again: when, with which headers, and whether its bytes differ."""

    received_at: datetime
    differs: bool
    headers: Headers


@dataclass(frozen=True, slots=True)
class Attempt:
    """A handler that failed in an attempt."""

    attempt: int
    at: datetime
    handler: str
    error: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A watermark: its version, the delivery that set it, and when, where that is known."""

    version: Version
    delivery_id: int
    set_at: datetime | None = None

    @property
    def rank(self) -> tuple[Version, int]:
        """What is compared."""
        return self.version, self.delivery_id


@dataclass(frozen=True, slots=True)
class Told:
    """What a handler made of the delivery.

    Args:
        handler: its name; "-" where none matched.
        outcome: applied, stale, superseded or ignored.
        at: when it was written.
        version: of the delivery, as this handler orders it; None for an accumulate handler.
        before: the watermark that it met.
        after: the watermark that it, or the one that won, left behind.
    """

    handler: str
    outcome: Outcome
    at: datetime
    version: Version | None = None
    before: Mark | None = None
    after: Mark | None = None


@dataclass(frozen=True, slots=True)
class InReplay:
    """A replay that queued the delivery."""

    id: int
    kind: str
    who: str
    reason: str | None
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Story:
    """All that the ledger knows of a delivery.

    Args:
        found: the delivery as a row of a list.
        version: what orders it, as the source reads it.
        position: which item of its request it is, from 0.
        read_at: when all this was read.
        headers: of the request, secret ones masked; empty once they are dropped or erased.
        body: exact; None once retention has dropped it, or it was erased.
        digest: SHA-256 of the body, which stays.
        imported: when and from where, if it did not come as a request to the receiver.
        released: the number in the quarantine from which it was let in.
        erased: when and by whom its body was erased.
        copies: what the sender sent again, the newest first, 50 at the most.
        copies_in_all: how many there are.
        attempts: those that failed, the newest first, 100 at the most.
        attempts_in_all: how many there are.
        outcomes: by handler.
        pauses: those that keep it from running.
        replays: in which it was queued, the newest first.
        died_at: when it was given up.
        secrets: values of its secret headers, to be taken out of any other text before that is shown.
    """

    found: Found
    version: Version | None
    position: int
    read_at: datetime
    headers: Headers
    body: bytes | None
    digest: str
    imported: tuple[datetime, str] | None
    released: int | None
    erased: tuple[datetime, str] | None
    copies: tuple[Copy, ...]
    copies_in_all: int
    attempts: tuple[Attempt, ...]
    attempts_in_all: int
    outcomes: tuple[Told, ...]
    pauses: tuple[Pause, ...]
    replays: tuple[InReplay, ...]
    died_at: datetime | None
    secrets: tuple[str, ...]

    @property
    def content_type(self) -> str:
        """Of the request."""
        return next((value for name, value in self.headers if name.lower() == "content-type"), "")


def find_id(connection: Connection, schema: str, source: str, event_id: str) -> int | None:
    """The delivery of an event, by the sender's id of it."""
    d = tables(schema).deliveries.c
    where = (d.source == storable.text(source), d.event_id == storable.key(event_id))
    found: int | None = connection.scalar(select(d.id).where(*where))
    return found


def read_story(connection: Connection, schema: str, delivery_id: int) -> Story | None:
    """The story of a delivery; None if there is none of that id.

    Give it a connection at REPEATABLE READ to have all of it of one moment.
    """
    page = find(connection, schema, Filter(ids=(delivery_id,)), limit=1)
    if not page.deliveries:
        return None
    t, found = tables(schema), page.deliveries[0]
    row = connection.execute(_request(t, delivery_id)).one()
    erased = None if row.erased_at is None else (row.erased_at, row.erased_by)
    raw_headers: Sequence[Sequence[str]] = row.headers or ()
    copies = connection.execute(_copies(t, delivery_id)).all()
    secrets = secret_values([*raw_headers, *[pair for copy in copies for pair in copy.headers]])
    attempts = connection.execute(_attempts(t, delivery_id)).all()
    return Story(
        found=found,
        version=None if row.version is None else version_of(row.version),
        position=row.position,
        read_at=row.read_at,
        headers=tuple(mask_headers(raw_headers)),
        body=None if row.body is None or erased is not None else bytes(row.body),
        digest=bytes(row.body_digest).hex(),
        imported=None if row.imported_at is None else (row.imported_at, row.origin),
        released=connection.scalar(_released(t, delivery_id)),
        erased=erased,
        copies=tuple([Copy(copy.received_at, copy.differs, tuple(mask_headers(copy.headers))) for copy in copies]),
        copies_in_all=copies[0].in_all if copies else 0,
        attempts=tuple([_attempt(one, secrets) for one in attempts]),
        attempts_in_all=attempts[0].in_all if attempts else 0,
        outcomes=_outcomes(connection, t, found),
        pauses=_pauses(connection, schema, found),
        replays=tuple([InReplay(*one) for one in connection.execute(_replays(t, delivery_id))]),
        died_at=row.died_at,
        secrets=tuple(secrets),
    )


def _request(t: Tables, delivery_id: int) -> Select[Any]:
    d, p, erased, imported = t.deliveries.c, t.payloads.c, t.erased.c, t.imported.c
    return (
        select(
            *(cast(d.version, Text).label("version"), d.position, d.body_digest, p.headers, p.body),
            *(erased.erased_at, erased.who.label("erased_by"), imported.imported_at, imported.origin),
            *(t.dead_letters.c.died_at, func.now().label("read_at")),
        )
        .select_from(t.deliveries)
        .outerjoin(t.payloads, (p.received_at == d.received_at) & (p.id == d.payload_id))
        .outerjoin(t.erased, erased.delivery_id == d.id)
        .outerjoin(t.imported, imported.delivery_id == d.id)
        .outerjoin(t.dead_letters, t.dead_letters.c.delivery_id == d.id)
        .where(d.id == delivery_id)
    )


def _copies(t: Tables, delivery_id: int) -> Select[Any]:
    again = t.redeliveries.c
    return (
        select(again.received_at, again.differs, again.headers, func.count().over().label("in_all"))
        .where(again.delivery_id == delivery_id)
        .order_by(again.id.desc())
        .limit(MOST_COPIES)
    )


def _attempts(t: Tables, delivery_id: int) -> Select[Any]:
    f = t.failures.c
    return (
        select(f.attempt, f.at, f.handler, f.error, f.fingerprint, func.count().over().label("in_all"))
        .where(f.delivery_id == delivery_id)
        .order_by(f.id.desc())
        .limit(MOST_ATTEMPTS)
    )


def _attempt(row: Row[Any], secrets: Sequence[str]) -> Attempt:
    return Attempt(row.attempt, row.at, row.handler, scrub(row.error, secrets), row.fingerprint)


def _released(t: Tables, delivery_id: int) -> Select[int]:
    kept = t.quarantine.c
    return select(kept.id).where(literal(delivery_id) == any_(kept.delivery_ids)).order_by(kept.id).limit(1)


def _replays(t: Tables, delivery_id: int) -> Select[Any]:
    replay = t.replays.c
    return (
        select(replay.id, replay.kind, replay.who, replay.reason, replay.started_at)
        .join_from(t.replayed, t.replays, replay.id == t.replayed.c.replay_id)
        .where(t.replayed.c.delivery_id == delivery_id)
        .order_by(replay.id.desc())
    )


def _pauses(connection: Connection, schema: str, found: Found) -> tuple[Pause, ...]:
    if not found.parked and found.due_at is None:
        return ()
    return tuple(
        [
            pause
            for pause in read_pauses(connection, schema)
            if (pause.kind is PauseKind.SOURCE and pause.name == found.source)
            or (pause.kind is PauseKind.HANDLER and found.parked)
        ]
    )


def _outcomes(connection: Connection, t: Tables, found: Found) -> tuple[Told, ...]:
    e = t.effects.c
    rows = connection.execute(
        select(e.handler, e.outcome, e.applied_at, cast(e.version, Text).label("version"))
        .where(e.source == found.source, e.event_id == found.event_id)
        .order_by(e.handler)
    ).all()
    if found.resource is None or all(row.version is None for row in rows):
        marks: dict[str, list[Mark]] = {}
    else:
        marks = _marks(connection, t, found)
    return tuple([_told(found, row, marks.get(row.handler, [])) for row in rows])


def _told(found: Found, row: Row[Any], marks: Sequence[Mark]) -> Told:
    outcome = Outcome(row.outcome)
    if row.version is None:
        return Told(row.handler, outcome, row.applied_at)
    own = Mark(version_of(row.version), found.id, row.applied_at)
    if not any(mark.set_at is None for mark in marks):
        # The handler has no state of this resource: it names another one itself.
        return Told(row.handler, outcome, row.applied_at, own.version)
    others = [mark for mark in marks if mark.delivery_id != found.id]
    earlier = [mark for mark in others if mark.set_at is not None and mark.set_at < row.applied_at]
    before = max(earlier, key=_rank, default=None)
    after: Mark | None = own
    if outcome is Outcome.STALE:
        if before is None or before.rank <= own.rank:
            # The one that set it then is not among the neighbours; whoever holds it now is newer still.
            before = next((mark for mark in others if mark.set_at is None and mark.rank > own.rank), None)
        after = before
    elif outcome is Outcome.SUPERSEDED:
        # What one transaction writes has one time.
        after = next((mark for mark in others if mark.set_at == row.applied_at), None)
    return Told(row.handler, outcome, row.applied_at, own.version, before, after)


def _rank(mark: Mark) -> tuple[Version, int]:
    return mark.rank


def _marks(connection: Connection, t: Tables, found: Found) -> dict[str, list[Mark]]:
    """By handler, the watermarks that deliveries of the resource near to this one have set, and at the end, without a
    time, the present one."""
    d, e, state = t.deliveries.c, t.effects.c, t.resource_state.c
    same = (d.resource == found.resource, d.source == found.source)
    below = select(d.event_id).where(*same, d.id <= found.id).order_by(d.id.desc()).limit(NEIGHBOURS)
    above = select(d.event_id).where(*same, d.id > found.id).order_by(d.id).limit(NEIGHBOURS)
    near = union_all(below.subquery().select(), above.subquery().select()).cte("near").prefix_with("MATERIALIZED")
    applied = (
        select(e.handler, cast(e.version, Text).label("version"), e.delivery_id, e.applied_at)
        .join_from(near, t.effects, (e.event_id == near.c.event_id) & (e.source == found.source))
        .where(e.outcome == Outcome.APPLIED.value, e.version.is_not(None))
    )
    marks: dict[str, list[Mark]] = {}
    for handler, version, delivery_id, at in connection.execute(applied):
        marks.setdefault(handler, []).append(Mark(version_of(version), delivery_id, at))
    present = select(state.handler, cast(state.version, Text), state.delivery_id).where(
        state.handler.in_(list(found.outcomes)),
        state.source == found.source,
        state.resource == found.resource,
        state.version.is_not(None),
    )
    for handler, version, delivery_id in connection.execute(present):
        marks.setdefault(handler, []).append(Mark(version_of(version), delivery_id))
    return marks
