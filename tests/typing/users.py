"""The public names as a user writes them, for the type checker only; checked with mypy --strict, never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Flask
from sqlalchemy import Connection, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from starlette.applications import Starlette
from starlette.routing import Mount

from hookledger import Delivery, Inbox, Reject, Retry, RetryPolicy, github, hmac_source, standard_webhooks, stripe
from hookledger.receive import IntakeSettings
from hookledger.testing import InboxClient, LedgerDatabase, WorkReport, assert_converges, run_worker_until_idle, signed
from hookledger.worker import Worker, WorkerSettings
from hookledger_flask import receiver
from hookledger_starlette import Receiver

inbox = Inbox(
    stripe(secrets="whsec_x"),
    github("acme-github", secrets=["new", "old"]),
    standard_webhooks("billing", secrets="whsec_x"),
    hmac_source("shop", header="X-Sig", secrets="x", resource="id", version="updated_at"),
    retry=RetryPolicy(max_attempts=5),
)


@inbox.snapshot("stripe", "customer.*")
def save_customer(delivery: Delivery, tx: Connection) -> Mapping[str, Any]:
    customer: Any = delivery.data["data"]["object"]
    return {"email": customer["email"]}


@inbox.accumulate("stripe", "charge.succeeded", retry=RetryPolicy(first_delay=1.0), name="revenue")
async def add_revenue(delivery: Delivery, tx: AsyncConnection) -> dict[str, int]:
    if delivery.attempt > 3:
        raise Reject("too late")
    raise Retry(after=60)


@inbox.accumulate("shop")
def with_session(delivery: Delivery, tx: Session) -> None: ...


@inbox.snapshot("shop", "order.*", resource=lambda delivery: delivery.data["id"], version=lambda delivery: 1)
async def with_async_session(delivery: Delivery, tx: AsyncSession) -> None: ...


engine = create_engine("postgresql+psycopg://")
async_engine = create_async_engine("postgresql+psycopg://")
starlette = Starlette(routes=[Mount("/webhooks", Receiver(inbox, async_engine))])
with_settings = Receiver(inbox, engine, settings=IntakeSettings(max_body_bytes=1024))
flask = Flask(__name__)
flask.register_blueprint(receiver(inbox, engine), url_prefix="/webhooks")
worker = Worker(inbox, async_engine, WorkerSettings(slots=2), observe=lambda settled: print(settled.outcome))


def a_test(database: LedgerDatabase, client: InboxClient) -> None:
    assert client.post("shop", {"id": "e1"}, headers={"X-More": "1"}).status == 200
    report: WorkReport = run_worker_until_idle(database, inbox, now=True)
    assert report.outcomes["applied"] == 1
    deliveries = [("shop", {"id": "e1"}), signed(inbox, "acme-github", b"{}", event_type="push")]
    assert_converges(database, inbox, deliveries, "SELECT 1", reset=lambda: None, examples=10)
    assert_converges(database, inbox, deliveries, lambda connection: connection.exec_driver_sql("SELECT 1"))
