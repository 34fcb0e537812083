"""The fixtures as a test of a user's takes them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, make_url, text
from sqlalchemy.ext.asyncio import AsyncConnection

from hookledger import Delivery, Inbox, SetupError, migrate
from hookledger.sources.catalogue import BUILT_IN, provider
from hookledger.testing import InboxClient, LedgerDatabase, WorkReport, signed
from hookledger.testing.databases import Databases
from tests.testing import shop
from tests.testing.shop import SHOP, event

Client = Callable[..., InboxClient]
Run = Callable[..., WorkReport]

PRIVATE = "discord"
"""A provider that signs with a private key."""


def of_providers(*names: str) -> Inbox:
    """An inbox of built-in providers, with the secrets of their samples."""
    sources = []
    for name in names:
        sample = provider(name).example()
        settings: dict[str, Any] = {**sample.settings, **({"url": sample.url} if sample.url else {})}
        sources.append(provider(name)(secrets=sample.secret, **settings))
    return Inbox(*sources)


def received(database: LedgerDatabase) -> list[tuple[Any, ...]]:
    with database.engine.connect() as connection:
        rows = connection.execute(text("SELECT source, event_id, event_type FROM hookledger.deliveries ORDER BY id"))
        return [tuple(row) for row in rows]


def test_a_database_has_the_ledger_and_the_tables(hookledger_database: LedgerDatabase) -> None:
    migrate.check(hookledger_database.engine)
    assert str(hookledger_database) == hookledger_database.url
    with hookledger_database.engine.begin() as connection:
        assert connection.execute(text("UPDATE sums SET total = total + 1 RETURNING total")).all() == [(1,)]


def test_each_test_has_its_own(hookledger_databases: Databases) -> None:
    seen: list[Connection] = []

    def prepare(connection: Connection) -> None:
        seen.append(connection)
        connection.execute(text('CREATE TABLE "odd: 100%" (n integer)'))

    with hookledger_databases.database('my "ledger"', prepare) as one:
        with one.engine.begin() as connection:
            connection.execute(text(r'INSERT INTO "odd\: 100%" VALUES (1)'))
        with hookledger_databases.database('my "ledger"', prepare) as two, two.engine.connect() as connection:
            assert connection.execute(text(r'SELECT count(*) FROM "odd\: 100%"')).scalar_one() == 0
            assert migrate.current(two.engine, schema='my "ledger"') == migrate.head()
            names = [make_url(each.url).database for each in (one, two)]
    assert len(seen) == 1
    with hookledger_databases.database("hookledger") as other, other.engine.connect() as connection:
        left = connection.execute(text("SELECT datname FROM pg_database")).scalars().all()
        assert not {*names} & {*left}


def test_a_role_that_may_not_create_databases_is_told(hookledger_database: LedgerDatabase) -> None:
    role = f"meek_{make_url(hookledger_database.url).database}"
    with hookledger_database.engine.begin() as connection:
        connection.execute(text(f'CREATE ROLE "{role}" LOGIN'))
    meek = make_url(hookledger_database.url).set(username=role)
    try:
        with (
            Databases(meek) as databases,
            pytest.raises(SetupError, match="may not create databases"),
            databases.database("hookledger"),
        ):
            pass
    finally:
        with hookledger_database.engine.begin() as connection:
            connection.execute(text(f'DROP ROLE "{role}"'))


@pytest.mark.parametrize("over", ["core", "http"])
def test_it_signs_and_posts(inbox_client: Client, hookledger_database: LedgerDatabase, over: str) -> None:
    inbox = of_providers("stripe", "github", "standard-webhooks", "shopify", "telegram", "slack")
    client = inbox_client(inbox, over=over)
    paid = {"id": "evt_1", "type": "charge.succeeded", "created": 1, "data": {"object": {"id": "ch_1"}}}
    assert client.post("stripe", paid).status == 200
    assert client.post("stripe", json.dumps(paid)).status == 200
    assert client.post("github", {"ref": "main"}, event_type="push", event_id="d-1").status == 200
    assert client.post("standard-webhooks", {"type": "user.made", "data": {}}, event_id="msg_1").status == 200
    for name in ("shopify", "telegram", "slack"):
        answer = client.post(name, provider(name).example().body)
        assert answer.status == 200
    assert client.post("stripe", paid, headers={"stripe-signature": "t=1,v1=00"}).status == 401
    assert client.post("stripe", paid, at=1_700_000_000.0).status == 401
    rows = received(hookledger_database)
    assert rows[:3] == [
        ("stripe", "evt_1", "charge.succeeded"),
        ("github", "d-1", "push"),
        ("standard-webhooks", "msg_1", "user.made"),
    ]
    assert len(rows) == 6


def test_every_provider_that_shares_a_secret_can_be_signed_for(inbox_client: Client) -> None:
    told = []
    for name in sorted(BUILT_IN):
        if not provider(name).can_be_sent:
            continue
        inbox = of_providers(name)
        answer = inbox_client(inbox).send(signed(inbox, name, provider(name).example().body))
        if answer.status // 100 != 2:
            told.append((name, answer.status))
    assert told == []


def test_what_cannot_be_signed_is_told(inbox_client: Client) -> None:
    client = inbox_client(Inbox(shop.inbox().source(SHOP), provider(PRIVATE)(secrets="ab" * 32)))
    for call, words in (
        (lambda: client.post(PRIVATE, {}), "private key"),
        (lambda: client.post("nobody", {}), "it has: discord, shop"),
        (lambda: client.post(SHOP, {"id": "e1"}, event_id="e2"), "put it there"),
        (lambda: client.post(SHOP, {"id": object()}), "which JSON has not"),
    ):
        with pytest.raises(SetupError, match=words):
            call()
    with pytest.raises(ValueError, match="core"):
        inbox_client(client.inbox, over="pigeon")


def failing(asynchronous: bool, times: int) -> Inbox:
    """An inbox with a snapshot handler, and one for facts that fails so many times."""
    inbox = shop.inbox(max_attempts=3)
    left = [times]

    def add(delivery: Delivery, tx: Connection) -> None:
        shop.add(delivery, tx)
        if left[0]:
            left[0] -= 1
            raise ValueError("not yet")

    inbox.snapshot(SHOP, "saved*", name="save")(shop.asynchronous(shop.save) if asynchronous else shop.save)
    inbox.accumulate(SHOP, "added", name="add")(shop.asynchronous(add) if asynchronous else add)
    return inbox


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_the_worker_tells_what_it_did(inbox_client: Client, run_worker_until_idle: Run, asynchronous: bool) -> None:
    inbox = failing(asynchronous, times=1)
    client = inbox_client(inbox)
    for each in (event(2), event(1), event(4, "added"), event(5, "other")):
        client.post(*each)
    report = run_worker_until_idle(inbox)
    assert report.outcomes == {"applied": 1, "superseded": 1, "failed": 1, "ignored": 1}
    assert (report.outcome("e1"), report.outcome("e2", "save"), report.outcome("e9")) == ("superseded", "applied", None)
    assert [(one.event_id, one.attempts, one.last_error) for one in report.pending] == [
        ("e4", 1, "ValueError: not yet")
    ]
    assert [one.error for one in report.failures] == ["ValueError: not yet"]
    assert run_worker_until_idle(inbox).settled == []
    report = run_worker_until_idle(inbox, now=True, slots=2, asynchronous=True)
    assert (report.outcome("e4"), report.pending, report.dead_letters) == ("applied", [], [])


def test_now_goes_on_to_the_end(inbox_client: Client, run_worker_until_idle: Run) -> None:
    inbox = failing(asynchronous=False, times=99)
    inbox_client(inbox).post(*event(1, "added"))
    report = run_worker_until_idle(inbox, now=True)
    assert report.outcomes == {"failed": 2, "dead (failed)": 1}
    assert [(one.event_id, one.reason, one.error) for one in report.dead_letters] == [
        ("e1", "failed", "ValueError: not yet")
    ]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_worker_that_does_not_end_is_told(
    inbox_client: Client, run_worker_until_idle: Run, asynchronous: bool
) -> None:
    inbox, ever = shop.inbox(), threading.Event()

    def wait(delivery: Delivery, tx: Connection) -> None:
        ever.wait()

    async def wait_asynchronously(delivery: Delivery, tx: AsyncConnection) -> None:
        await asyncio.Event().wait()

    inbox.accumulate(SHOP, "added")(wait_asynchronously if asynchronous else wait)
    inbox_client(inbox).post(*event(1, "added"))
    with pytest.raises(TimeoutError, match="pending are: shop added e1"):
        run_worker_until_idle(inbox, timeout=0.5)
    ever.set()


async def within_a_loop(run: Run, inbox: Inbox) -> WorkReport:
    return run(inbox)


def test_a_test_may_be_a_coroutine(inbox_client: Client, run_worker_until_idle: Run) -> None:
    inbox = failing(asynchronous=True, times=0)
    inbox_client(inbox).post(*event(1, "added"))
    assert asyncio.run(within_a_loop(run_worker_until_idle, inbox)).outcomes == {"applied": 1}
