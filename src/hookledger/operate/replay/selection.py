"""Which deliveries a replay is about, and the SQL that reads them in the order of their ids."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, and_, bindparam, exists, false, func, or_, select, true

from hookledger.errors import SetupError
from hookledger.handlers import Handler
from hookledger.ledger.schema import Tables
from hookledger.operate.filters import Filter, State


class Kind(enum.StrEnum):
    """What a replay is for."""

    REPLAY = "replay"
    BACKFILL = "backfill"
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class Matching:
    """The handler that a backfill, or a forgetting of effects, is for.

    Args:
        handler: its name in the ledger.
        source: whose deliveries it takes; None where that is not known.
        event_types: its patterns, `*` for any run of characters.
        aliases: names that it had before.
    """

    handler: str
    source: str | None = None
    event_types: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @classmethod
    def of(cls, handler: Handler) -> Matching:
        """That of a registered handler."""
        return cls(handler.name, handler.source, handler.event_types, handler.aliases)

    @property
    def names(self) -> tuple[str, ...]:
        """Under which its effects stand."""
        return (self.handler, *self.aliases)


@dataclass(frozen=True, slots=True)
class Selection:
    """The deliveries that a replay is about.

    A replay is about dead ones, unless settled ones are asked for. A backfill is about settled ones that its handler
    matches and has no effect of; forgetting is about those with an effect of the handler, dead or settled. None is
    ever about pending ones: those run by themselves.

    Args:
        filter: what must hold of them.
        include_settled: also those that are settled; a filter with the state settled is about these alone.
        kind: what it is for.
        matching: the handler of a backfill or a forgetting.

    Raises:
        SetupError: for a filter of pending ones, or a handler that is missing or not wanted.
    """

    filter: Filter = field(default_factory=Filter)
    include_settled: bool = False
    kind: Kind = Kind.REPLAY
    matching: Matching | None = None

    def __post_init__(self) -> None:
        if self.filter.state is State.PENDING:
            raise SetupError("pending deliveries run by themselves: replay those that are dead or settled")
        if (self.matching is None) is not (self.kind is Kind.REPLAY):
            raise SetupError("a backfill and a forgetting of effects are for one handler, a replay for all")

    @property
    def states(self) -> tuple[State, ...]:
        """Those of the deliveries that are touched."""
        if self.filter.state is not None:
            return (self.filter.state,)
        if self.kind is Kind.FORGET or self.include_settled:
            return (State.DEAD, State.SETTLED)
        return (State.SETTLED,) if self.kind is Kind.BACKFILL else (State.DEAD,)

    def as_document(self) -> dict[str, Any]:
        """As JSON can hold it."""
        document: dict[str, Any] = self.filter.as_document()
        if self.include_settled:
            document["include_settled"] = True
        if self.matching is not None:
            document["handler"] = asdict(self.matching)
        return document

    @classmethod
    def of_document(cls, kind: str, document: Mapping[str, Any]) -> Selection:
        """The selection of which `as_document` gave this."""
        rest = dict(document)
        include_settled = bool(rest.pop("include_settled", False))
        handler = rest.pop("handler", None)
        matching = None
        if handler is not None:
            lists = {name: tuple(handler[name]) for name in ("event_types", "aliases")}
            matching = Matching(handler["handler"], handler["source"], **lists)
        return cls(Filter.of_document(rest), include_settled, Kind(kind), matching)

    def rows(self, t: Tables, most: int, *columns: ColumnElement[Any]) -> Select[Any]:
        """The next deliveries after the id bound as `after`, up to that bound as `until`, in the order of their ids.

        Args:
            t: the tables.
            most: rows at the most.
            columns: besides id, and `dead`, which says whether it is a dead letter.
        """
        d = t.deliveries
        dead = t.dead_letters
        conditions = self.conditions(t)
        after, until = bindparam("after", type_=BigInteger), bindparam("until", type_=BigInteger)
        if self.states == (State.DEAD,):
            # From the dead letters, which are few, and by their key.
            statement = select(d.c.id, true().label("dead"), *columns).join_from(dead, d, d.c.id == dead.c.delivery_id)
            key: ColumnElement[int] = dead.c.delivery_id
        else:
            key = d.c.id
            is_dead = exists().where(dead.c.delivery_id == d.c.id)
            if State.DEAD not in self.states:
                conditions.append(~is_dead)
            conditions.append(~exists().where(t.pending.c.delivery_id == d.c.id))
            shown = there_is(dead.c.delivery_id == d.c.id) if State.DEAD in self.states else false()
            statement = select(d.c.id, shown.label("dead"), *columns)
        return statement.where(*conditions, key > after, key <= until).order_by(key).limit(most)

    def conditions(self, t: Tables) -> list[ColumnElement[bool]]:
        """What must hold of a row of `deliveries`, whatever its state."""
        conditions = replace(self.filter, state=None).conditions(t)
        matching = self.matching
        if matching is None:
            return conditions
        d, effect = t.deliveries.c, t.effects.c
        if matching.source is not None:
            conditions.append(d.source == matching.source)
        if matching.event_types and "*" not in matching.event_types:
            conditions.append(or_(*[and_(*_typed(pattern, t)) for pattern in matching.event_types]))
        names = matching.names if self.kind is Kind.BACKFILL else (matching.handler,)
        has_effect = there_is(effect.source == d.source, effect.event_id == d.event_id, effect.handler.in_(names))
        conditions.append(~has_effect if self.kind is Kind.BACKFILL else has_effect)
        return conditions


def there_is(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether there is a row of which the conditions hold: looked up for each row by an index. Of an EXISTS in a column
    PostgreSQL may instead read the whole table into memory."""
    return func.coalesce(select(true()).where(*conditions).limit(1).scalar_subquery(), false())


def has_bytes(
    t: Tables, received_at: ColumnElement[Any], payload_id: ColumnElement[int], id_: ColumnElement[int]
) -> ColumnElement[bool]:
    """Whether the bytes of a delivery are there: neither retention nor an erasure has taken them."""
    payload = t.payloads.c
    kept = there_is(payload.received_at == received_at, payload.id == payload_id)
    return kept & ~there_is(t.erased.c.delivery_id == id_)


def _typed(pattern: str, t: Tables) -> Sequence[ColumnElement[bool]]:
    return Filter(event_type=pattern).conditions(t)
