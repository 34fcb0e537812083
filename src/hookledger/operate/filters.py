"""Which deliveries are meant: one filter for finding, replaying and erasing, and its SQL.

Its fields have the names of the command line's options and of the console's URLs.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Select, any_, exists, func, literal, or_, select, union

from hookledger import storable
from hookledger.ledger.schema import Tables, tables
from hookledger.outcomes import DeathReason, Outcome

BIGINTS = ARRAY(BigInteger)


class State(enum.StrEnum):
    """Where a delivery is; at any moment in exactly one of the three."""

    PENDING = "pending"
    DEAD = "dead"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class Filter:
    """All of these must hold; what is None lets everything through.

    Args:
        source: name of the source.
        event_type: of the event, with `*` for any run of characters, as handlers write it.
        resource: the whole key of the resource.
        ids: of deliveries; none at all if it is empty.
        event_id: the sender's id of the event.
        outcome: some handler's outcome of it.
        state: pending, dead or settled.
        received_since: the first moment of receipt that is meant, with zone.
        received_until: the first moment of receipt that is not.
        settled_since: some handler's outcome was written then or later.
        settled_until: and before this moment.
        fingerprint: of an error with which it failed or died, as `hookledger dead` shows it.
        text: occurs in the body of its request; of a batch, that is in the bytes of the whole batch.
    """

    source: str | None = None
    event_type: str | None = None
    resource: str | None = None
    ids: tuple[int, ...] | None = None
    event_id: str | None = None
    outcome: Outcome | None = None
    state: State | None = None
    received_since: datetime | None = None
    received_until: datetime | None = None
    settled_since: datetime | None = None
    settled_until: datetime | None = None
    fingerprint: str | None = None
    text: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it lets every delivery through."""
        return self == Filter()

    def apply(self, statement: Select[Any], schema: str) -> Select[Any]:
        """A statement over `tables(schema).deliveries`, with the conditions added."""
        return statement.where(*self.conditions(tables(schema)))

    def conditions(self, t: Tables) -> list[ColumnElement[bool]]:
        """What must hold of a row of `deliveries`."""
        row = t.deliveries.c
        found: list[ColumnElement[bool]] = []
        if self.source is not None:
            found.append(row.source == storable.text(self.source))
        if self.event_type is not None:
            found.append(_matches(row.event_type, storable.text(self.event_type)))
        if self.resource is not None:
            found.append(row.resource == storable.key(self.resource))
        if self.ids is not None:
            found.append(row.id == any_(literal(list(self.ids), BIGINTS)))
        if self.event_id is not None:
            found.append(row.event_id == storable.key(self.event_id))
        if self.state is not None:
            found.append(_is_in(t, self.state))
        if self.received_since is not None:
            found.append(row.received_at >= self.received_since)
        if self.received_until is not None:
            found.append(row.received_at < self.received_until)
        if self.outcome is not None or self.settled_since is not None or self.settled_until is not None:
            found.append(self._has_effect(t))
        if self.fingerprint is not None:
            found.append(_failed_with(t, self.fingerprint))
        if self.text is not None:
            found.append(_body_holds(t, self.text))
        return found

    def as_document(self) -> dict[str, Any]:
        """What is set, as JSON can hold it: times as ISO 8601 with zone."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _as_json(value) for name, value in given.items() if value is not None}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Filter:
        """The filter of which `as_document` gave this."""
        read: dict[str, Any] = dict(document)
        for name in ("received_since", "received_until", "settled_since", "settled_until"):
            if name in read:
                read[name] = datetime.fromisoformat(read[name])
        for name, kind in (("outcome", Outcome), ("state", State), ("ids", tuple)):
            if name in read:
                read[name] = kind(read[name])
        return cls(**read)

    def _has_effect(self, t: Tables) -> ColumnElement[bool]:
        row, effect = t.deliveries.c, t.effects.c
        # The key finds the effects of a delivery, the delivery's id the delivery of a rare outcome.
        wanted = [effect.source == row.source, effect.event_id == row.event_id, effect.delivery_id == row.id]
        if self.outcome is not None:
            wanted.append(effect.outcome == self.outcome.value)
        if self.settled_since is not None:
            wanted.append(effect.applied_at >= self.settled_since)
        if self.settled_until is not None:
            wanted.append(effect.applied_at < self.settled_until)
        return exists().where(*wanted)


def state_of(t: Tables) -> ColumnElement[str]:
    """The state of a row of `deliveries`, as an expression."""
    id_ = t.deliveries.c.id
    pending = select(literal(State.PENDING.value)).where(t.pending.c.delivery_id == id_).scalar_subquery()
    dead = select(literal(State.DEAD.value)).where(t.dead_letters.c.delivery_id == id_).scalar_subquery()
    return func.coalesce(pending, dead, State.SETTLED.value)


def _is_in(t: Tables, state: State) -> ColumnElement[bool]:
    pending = exists().where(t.pending.c.delivery_id == t.deliveries.c.id)
    dead = exists().where(t.dead_letters.c.delivery_id == t.deliveries.c.id)
    if state is State.PENDING:
        return pending
    return dead if state is State.DEAD else ~pending & ~dead


def _matches(column: ColumnElement[str], pattern: str) -> ColumnElement[bool]:
    if "*" not in pattern:
        return column == pattern
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return column.like(escaped.replace("*", "%"), escape="\\")


def _failed_with(t: Tables, fingerprint: str) -> ColumnElement[bool]:
    dead, failure = t.dead_letters.c, t.failures.c
    # The index of the dead letters begins with the reason.
    died = select(dead.delivery_id).where(
        dead.reason.in_([reason.value for reason in DeathReason]), dead.fingerprint == storable.text(fingerprint)
    )
    failed = select(failure.delivery_id).where(failure.fingerprint == storable.text(fingerprint))
    return t.deliveries.c.id.in_(union(died, failed))


def _body_holds(t: Tables, text: str) -> ColumnElement[bool]:
    row, payload = t.deliveries.c, t.payloads.c
    spelt = [func.position(literal(needle).op("IN")(payload.body)) > 0 for needle in _spellings(text)]
    return exists().where(payload.id == row.payload_id, payload.received_at == row.received_at, or_(*spelt))


def _spellings(text: str) -> Iterable[bytes]:
    """The text as UTF-8, and as JSON writes it with few escapes and with many."""
    try:
        # Bytes of the command line that are no UTF-8.
        written = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        written = text.encode("utf-8", "surrogatepass")
    quoted = json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    return dict.fromkeys([written, quoted, json.dumps(text)[1:-1].encode("ascii")])


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return list(value)
    return str(value)
