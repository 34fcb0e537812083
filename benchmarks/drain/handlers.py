"""Our side of the drain: a snapshot handler that reads the JSON, and one that makes an INSERT of its own as well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from multiprocessing.sharedctypes import Synchronized
from typing import TypeAlias

from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from benchmarks.deliveries import EVENT_TYPE, SOURCE
from benchmarks.ledger import HANDLER
from hookledger import Delivery, Inbox, hmac_source
from hookledger.cli.process import freeze_what_is_loaded
from hookledger.engine import create
from hookledger.worker import Settled, Worker, WorkerSettings

Counter: TypeAlias = "Synchronized[int]"

SPARE_CONNECTIONS = 2
"""Besides one connection a slot, as `hookledger worker` has them."""

MINE = "CREATE TABLE mine (delivery_id bigint, note text)"
INSERT = text("INSERT INTO mine VALUES (:delivery_id, :note)")


def make_inbox(*, insert: bool, asynchronous: bool) -> Inbox:
    """An inbox with one snapshot handler for everything.

    Args:
        insert: whether it makes an INSERT of its own through `tx`.
        asynchronous: whether it is an asynchronous function.
    """
    source = hmac_source(
        SOURCE, header="X-Signature", secrets="benchmark", resource="data.object.id", version="version"
    )
    inbox = Inbox(source)
    register = inbox.snapshot(SOURCE, EVENT_TYPE, name=HANDLER)
    if asynchronous:

        async def save_customer_async(delivery: Delivery, tx: AsyncConnection) -> None:
            customer = delivery.data["data"]["object"]
            if insert:
                await tx.execute(INSERT, {"delivery_id": delivery.id, "note": customer["id"]})

        register(save_customer_async)
    else:

        def save_customer(delivery: Delivery, tx: Connection) -> None:
            customer = delivery.data["data"]["object"]
            if insert:
                tx.execute(INSERT, {"delivery_id": delivery.id, "note": customer["id"]})

        register(save_customer)
    return inbox


def drain(url: str, settings: WorkerSettings, insert: bool, asynchronous: bool, at_most: int | None = None) -> None:
    """Work in this process until nothing is due.

    Args:
        url: of the database.
        settings: of the worker.
        insert, asynchronous: as `make_inbox` takes them.
        at_most: stop after about so many deliveries.
    """
    inbox = make_inbox(insert=insert, asynchronous=asynchronous)

    async def main() -> None:
        size = settings.slots + SPARE_CONNECTIONS
        engine = create(url, asynchronous=True, pool_size=size) if asynchronous else create(url, pool_size=size)
        worker = Worker(inbox, engine, settings)
        freeze_what_is_loaded()
        if at_most is not None:
            worker = Worker(inbox, engine, settings, observe=_stopping_after(at_most, lambda: worker.stop()))
        await worker.run_until_idle()
        if isinstance(engine, AsyncEngine):
            await engine.dispose()
        else:
            engine.dispose()

    asyncio.run(main())


def work_on(url: str, settings: WorkerSettings, asynchronous: bool, settled: Counter) -> None:
    """Work in this process until it is ended from outside.

    Args:
        url: of the database.
        settings: of the worker.
        asynchronous: as `make_inbox` takes it.
        settled: counts what is settled, in shared memory.
    """

    def observe(_: Settled) -> None:
        with settled.get_lock():
            settled.value += 1

    async def main() -> None:
        size = settings.slots + SPARE_CONNECTIONS
        engine = create(url, asynchronous=True, pool_size=size) if asynchronous else create(url, pool_size=size)
        worker = Worker(make_inbox(insert=False, asynchronous=asynchronous), engine, settings, observe=observe)
        freeze_what_is_loaded()
        await worker.run()

    asyncio.run(main())


def _stopping_after(deliveries: int, stop: Callable[[], None]) -> Callable[[Settled], None]:
    seen = 0

    def observe(_: Settled) -> None:
        nonlocal seen
        seen += 1
        if seen == deliveries:
            stop()

    return observe
