"""Stripe into a Starlette application, with the worker in the same process: one process and PostgreSQL, no more.

    pip install '.[starlette]' uvicorn
    export DATABASE_URL=postgresql://user@host/database STRIPE_WEBHOOK_SECRET=whsec_...
    hookledger db upgrade
    uvicorn starlette_stripe:app

At Stripe, register https://your.host/webhooks/stripe for customer.* and charge.succeeded.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import BigInteger, Column, Connection, MetaData, Table, Text, delete
from sqlalchemy.dialects.postgresql import insert
from starlette.applications import Starlette
from starlette.routing import Mount

from hookledger import Delivery, Inbox, stripe
from hookledger.engine import create
from hookledger_starlette import Receiver, worker_lifespan

metadata = MetaData()
customers = Table("customers", metadata, Column("id", Text, primary_key=True), Column("email", Text))
revenue = Table("revenue", metadata, Column("currency", Text, primary_key=True), Column("cents", BigInteger))

# While a secret is rolled, give both: secrets=[new, old].
inbox = Inbox(stripe(secrets=os.environ["STRIPE_WEBHOOK_SECRET"]))


# The event carries the whole customer, so only the newest one counts. Stripe promises no order, and a late
# "updated" must not bring a deleted customer back: an older event than the last one never gets here.
@inbox.snapshot("stripe", "customer.created", "customer.updated", "customer.deleted")
def save_customer(delivery: Delivery, tx: Connection) -> None:
    customer = delivery.data["data"]["object"]
    if delivery.deleted:
        tx.execute(delete(customers).where(customers.c.id == customer["id"]))
        return
    row = {"id": customer["id"], "email": customer["email"]}
    tx.execute(insert(customers).values(row).on_conflict_do_update(index_elements=["id"], set_=row))


# The event is a fact to add: in any order, but once. The sum is committed together with the note that this
# event was applied, so neither Stripe's retries nor our crashes add it twice. Never commit here.
@inbox.accumulate("stripe", "charge.succeeded")
def add_revenue(delivery: Delivery, tx: Connection) -> None:
    charge = delivery.data["data"]["object"]
    statement = insert(revenue).values(currency=charge["currency"], cents=charge["amount"])
    added = revenue.c.cents + statement.excluded.cents
    tx.execute(statement.on_conflict_do_update(index_elements=["currency"], set_={"cents": added}))


# Reads DATABASE_URL. The receiver takes three connections at the most, the worker one for each of its four slots
# and one more.
engine = create(pool_size=10)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    metadata.create_all(engine)  # stands for the migrations of your own tables
    async with worker_lifespan(inbox, engine)(app):
        yield


app = Starlette(routes=[Mount("/webhooks", Receiver(inbox, engine))], lifespan=lifespan)
