"""What is in quarantine."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, func, select

from hookledger import storable
from hookledger.errors import SetupError
from hookledger.http import Headers, Request
from hookledger.ledger.schema import Tables, tables


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which refused requests are meant: all of these must hold; what is None lets everything through.

    Args:
        ids: of the requests; none at all if it is empty.
        source: it was sent to.
        reason: in one word, as `Group` has it.
        since, until: the first moment that is meant, and the first one after it that is not.
        released: whether it was let in; None for both.
    """

    ids: tuple[int, ...] | None = None
    source: str | None = None
    reason: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    released: bool | None = None

    @property
    def is_everything(self) -> bool:
        """Whether nothing was named that would narrow it."""
        return self.ids is None and not any((self.source, self.reason, self.since, self.until))

    def conditions(self, t: Tables) -> list[ColumnElement[bool]]:
        """What must hold of a row of the quarantine."""
        q = t.quarantine.c
        found: list[ColumnElement[bool]] = []
        if self.ids is not None:
            found.append(q.id.in_(self.ids))
        if self.source is not None:
            found.append(q.source == storable.text(self.source))
        if self.reason is not None:
            found.append(q.reason == storable.text(self.reason))
        if self.since is not None:
            found.append(q.at >= self.since)
        if self.until is not None:
            found.append(q.at < self.until)
        if self.released is not None:
            found.append(q.released_at.is_not(None) if self.released else q.released_at.is_(None))
        return found


@dataclass(frozen=True, slots=True)
class Group:
    """Refused requests of one source that were refused for the same reason.

    Args:
        count: how many.
        released: how many of them were let in since.
        first_at, last_at: when they came.
        example: the id of the latest.
    """

    source: str
    reason: str
    count: int
    released: int
    first_at: datetime
    last_at: datetime
    example: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A refused request.

    Args:
        at: when it came, by the database's clock.
        status: of the answer that it got.
        reason, diagnosis: why it was refused, in one word and in a sentence.
        size: bytes of its body, which is not kept if it is over the receiver's `max_bytes`.
        released_at, delivery_ids: when it was let in, and as what; None if it was not.
        request: as it came. It holds what the sender sent, secrets among it: mask it where it is shown.
    """

    id: int
    at: datetime
    source: str
    status: int
    reason: str
    diagnosis: str
    size: int
    released_at: datetime | None
    delivery_ids: tuple[int, ...] | None
    request: Request = field(repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether its body was kept."""
        return len(self.request.body) == self.size


def groups(connection: Connection, schema: str, wanted: Wanted) -> list[Group]:
    """By source and reason, the latest first."""
    q = tables(schema).quarantine.c
    query = (
        select(
            q.source,
            q.reason,
            func.count(),
            func.count().filter(q.released_at.is_not(None)),
            func.min(q.at),
            func.max(q.at),
            func.max(q.id),
        )
        .where(*wanted.conditions(tables(schema)))
        .group_by(q.source, q.reason)
        .order_by(func.max(q.id).desc())
    )
    return [Group(*row) for row in connection.execute(query)]


def kept(
    connection: Connection, schema: str, wanted: Wanted, *, limit: int = 100, before: int | None = None
) -> list[Kept]:
    """Refused requests, the latest first.

    Args:
        connection: to the ledger's database.
        schema: of the ledger.
        wanted: which.
        limit: how many at the most.
        before: the id after which the last page ended.
    """
    t = tables(schema)
    query = _rows(t).where(*wanted.conditions(t)).order_by(t.quarantine.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(t.quarantine.c.id < before)
    return [as_kept(row) for row in connection.execute(query)]


def following(connection: Connection, schema: str, wanted: Wanted, *, after: int, limit: int) -> list[Kept]:
    """Refused requests in the order in which they came, those after an id."""
    t = tables(schema)
    query = _rows(t).where(*wanted.conditions(t), t.quarantine.c.id > after).order_by(t.quarantine.c.id).limit(limit)
    return [as_kept(row) for row in connection.execute(query)]


def one(connection: Connection, schema: str, id: int) -> Kept:
    """The refused request of that id.

    Raises:
        SetupError: if there is none (any more).
    """
    found = kept(connection, schema, Wanted(ids=(id,)), limit=1)
    if not found:
        raise SetupError(f"there is no request {id} in quarantine: it was never kept, has expired or was discarded")
    return found[0]


def as_kept(row: Row[Any]) -> Kept:
    """A row of the quarantine."""
    headers = Headers((name, value) for name, value in row.headers)
    query = row.url.partition("?")[2].partition("#")[0]
    request = Request(row.source, row.method, headers, bytes(row.body), row.url, query)
    ids = None if row.delivery_ids is None else tuple(row.delivery_ids)
    return Kept(
        row.id,
        row.at,
        row.source,
        row.status,
        row.reason,
        row.diagnosis or "",
        row.size,
        row.released_at,
        ids,
        request,
    )


def _rows(t: Tables) -> Select[Any]:
    return select(t.quarantine)
