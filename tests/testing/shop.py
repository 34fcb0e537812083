"""A sender, its deliveries, and handlers of every kind: right ones, and such as have a mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from hookledger import Delivery, Inbox, RetryPolicy, hmac_source

SHOP = "shop"
STATE = ("SELECT resource, value FROM mirror", "SELECT resource, total FROM sums")

_SAVE = text(
    "INSERT INTO mirror VALUES (:resource, :value) ON CONFLICT (resource) DO UPDATE SET value = excluded.value"
)
_FORGET = text("DELETE FROM mirror WHERE resource = :resource")
_ADD = text(
    "INSERT INTO sums VALUES (:resource, :value)"
    " ON CONFLICT (resource) DO UPDATE SET total = sums.total + excluded.total"
)


class Base(DeclarativeBase):
    """Of the tables below."""


class Mirror(Base):
    """The last snapshot of each resource."""

    __tablename__ = "mirror"
    resource: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[int]


class Sum(Base):
    """What was added up for each resource."""

    __tablename__ = "sums"
    resource: Mapped[str] = mapped_column(primary_key=True)
    total: Mapped[int]


def event(
    number: int, kind: str = "saved", resource: str = "r", version: int = 0, value: int = 0, **more: Any
) -> tuple[str, dict[str, Any]]:
    """A delivery; without a version it is newer than those of lower numbers."""
    fields = {"resource": resource, "version": version or number, "value": value or 10**number}
    return SHOP, {"id": f"e{number}", "type": kind, **fields, **more}


SNAPSHOTS = (event(1), event(2), event(3, "saved.deleted"), event(4, resource="s"))
TIES = (event(1, version=7), event(2, version=7))
FACTS = (event(1, "added"), event(2, "added"), event(3, "added", resource="s"))
EVERYTHING = (event(1), event(2, version=1), event(3, "added"), event(4, "added"), event(5, "saved.deleted"))


def inbox(**retry: Any) -> Inbox:
    """An inbox with that sender and no handlers."""
    source = hmac_source(SHOP, header="X-Sig", secrets="k-test-1", resource="resource", version="version")
    return Inbox(source, retry=RetryPolicy(**retry))


def save(delivery: Delivery, tx: Connection) -> None:
    """A right snapshot handler."""
    if delivery.deleted:
        tx.execute(_FORGET, {"resource": delivery.resource})
    else:
        tx.execute(_SAVE, {"resource": delivery.resource, "value": delivery.data["value"]})


def add(delivery: Delivery, tx: Connection) -> None:
    """A right accumulate handler."""
    tx.execute(_ADD, {"resource": delivery.resource, "value": delivery.data["value"]})


def read_and_write_back(delivery: Delivery, tx: Connection) -> None:
    """A wrong accumulate handler: what it reads may be gone when it writes."""
    found = tx.execute(text("SELECT total FROM sums WHERE resource = 'all'")).scalar_one()
    total = found + delivery.data["value"]
    tx.execute(text("UPDATE sums SET total = :total WHERE resource = 'all'"), {"total": total})


def lock_and_write_back(delivery: Delivery, tx: Connection) -> None:
    """The same, but right."""
    found = tx.execute(text("SELECT total FROM sums WHERE resource = 'all' FOR UPDATE")).scalar_one()
    total = found + delivery.data["value"]
    tx.execute(text("UPDATE sums SET total = :total WHERE resource = 'all'"), {"total": total})


def session_save(delivery: Delivery, tx: Session) -> None:
    """As `save`, with the ORM."""
    found = tx.get(Mirror, delivery.resource)
    if delivery.deleted:
        if found is not None:
            tx.delete(found)
    elif found is None:
        tx.add(Mirror(resource=str(delivery.resource), value=delivery.data["value"]))
    else:
        found.value = delivery.data["value"]


def session_add(delivery: Delivery, tx: Session) -> None:
    """As `add`, with the ORM: the row is locked before it is changed."""
    found = tx.get_one(Sum, "all", with_for_update=True)
    found.total += delivery.data["value"]


def session_read_and_write_back(delivery: Delivery, tx: Session) -> None:
    """As `read_and_write_back`, with the ORM."""
    found = tx.get_one(Sum, "all")
    found.total += delivery.data["value"]


def asynchronous(body: Callable[[Delivery, Connection], None]) -> Callable[..., Any]:
    """A handler that is a coroutine function and does the same."""

    async def handle(delivery: Delivery, tx: AsyncConnection) -> None:
        await tx.run_sync(lambda connection: body(delivery, connection))

    return handle


def asynchronous_session(body: Callable[[Delivery, Session], None]) -> Callable[..., Any]:
    """The same for sessions."""

    async def handle(delivery: Delivery, tx: AsyncSession) -> None:
        await tx.run_sync(lambda session: body(delivery, session))

    return handle
