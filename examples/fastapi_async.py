"""A sender of one's own into FastAPI, asynchronous throughout: AsyncEngine, async handlers, the ORM.

    pip install '.[starlette]' fastapi uvicorn
    export DATABASE_URL=postgresql://user@host/database SHOP_SECRET=...
    hookledger db upgrade
    uvicorn fastapi_async:app

The shop posts {"id": "evt_1", "type": "order.paid", "order": {"id": "o_1", "revision": 3, "total": 1999}} to
/webhooks/shop, with the header X-Shop-Signature: the hex HMAC-SHA256 of the body.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from sqlalchemy import BigInteger
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from hookledger import Delivery, Inbox, Reject, hmac_source
from hookledger.engine import create
from hookledger_starlette import Receiver, worker_lifespan


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str]
    total: Mapped[int] = mapped_column(BigInteger)


# Any sender that signs with an HMAC. `revision` orders the snapshots of an order: a number, compared as one.
inbox = Inbox(
    hmac_source(
        "shop",
        header="X-Shop-Signature",
        secrets=os.environ["SHOP_SECRET"],
        resource="order.id",
        version="order.revision",
    )
)


# The annotation asks for a session: it is bound to the transaction that also holds the watermark and the note
# that this event was applied. Flush as you like, and leave the commit to hookledger.
@inbox.snapshot("shop", "order.*")
async def save_order(delivery: Delivery, session: AsyncSession) -> None:
    order = delivery.data["order"]
    if order["total"] < 0:
        raise Reject("an order cannot have a negative total")  # no retry would mend it: a dead letter at once
    # What goes out of the database is at-least-once: give delivery.idempotency_key to the services you call.
    await session.merge(Order(id=order["id"], status=delivery.event_type.removeprefix("order."), total=order["total"]))


engine = create(asynchronous=True, pool_size=10)  # reads DATABASE_URL
sessions = async_sessionmaker(engine)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)  # stands for the migrations of your own tables
    async with worker_lifespan(inbox, engine)(app):
        yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)
app.mount("/webhooks", Receiver(inbox, engine))


@app.get("/orders/{order_id}")
async def order(order_id: str) -> dict[str, str | int]:
    async with sessions() as session:
        found = await session.get(Order, order_id)
    if found is None:
        raise HTTPException(404)
    return {"status": found.status, "total": found.total}
