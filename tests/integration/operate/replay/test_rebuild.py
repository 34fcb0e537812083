"""Running stored deliveries into a shadow schema: nothing live is touched, and what differs is shown."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from sqlalchemy import Connection, text

from hookledger import Delivery, Inbox, Reject, SetupError
from hookledger.errors import HandlerError
from hookledger.operate.rebuild import Rebuilt, Shadow, differences, prepare, rebuild
from tests.outcomes import SHOP, document, inbox_of_shop
from tests.replaying import Shop
from tests.ways import WAYS, Way

_KEEP = "INSERT INTO {table} VALUES (:id, :value) ON CONFLICT (id) DO UPDATE SET value = excluded.value"


def keeping(way: Way, factor: int = 1, table: str = "kept", **fails: Any) -> Inbox:
    """An inbox whose handlers keep a value, in a table and as state, and add it up."""
    inbox = inbox_of_shop()

    def keep(delivery: Delivery, tx: Connection) -> dict[str, int]:
        value = delivery.data["value"] * factor
        tx.execute(text(_KEEP.format(table=table)), {"id": delivery.resource, "value": value})
        if delivery.data["value"] == fails.get("at"):
            raise Reject("not this one")
        return {"value": value}

    def add(delivery: Delivery, tx: Connection) -> dict[str, int]:
        return {"total": delivery.data["value"] * factor}

    inbox.snapshot(SHOP, "thing.*", name="keep")(way.handler(keep))
    inbox.accumulate(SHOP, "thing.*", name="add")(way.handler(add))
    return inbox


@pytest.fixture(params=[WAYS[0], WAYS[2]], ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    way: Way = request.param
    return way


@pytest.fixture
def filled(shop: Shop, way: Way) -> Shop:
    """Three things in several versions, worked on by handlers that double."""
    shop.execute("CREATE TABLE kept (id text PRIMARY KEY, value integer NOT NULL)")
    for number in range(9):
        version = (number * 7) % 9
        shop.record(document(f"e{number}", f"r{number % 3}", version, value=version))
    way.work(shop.url, keeping(way, factor=2))
    return shop


def run(shop: Shop, way: Way, shadow: Shadow) -> Rebuilt:
    async def main() -> Rebuilt:
        engine = way.engine(shop.url, 1)
        try:
            return await rebuild(engine, shadow)
        finally:
            disposed = engine.dispose()
            if inspect.isawaitable(disposed):
                await disposed

    return asyncio.run(main())


def live(shop: Shop) -> list[Any]:
    """All that must not change."""
    tables = ("hookledger.resource_state", "hookledger.effects", "hookledger.pending", "hookledger.failures", "kept")
    return [sorted(map(str, shop.execute(f"SELECT * FROM {table}"))) for table in tables]


def test_it_ends_in_the_states_of_the_mended_handler_and_touches_nothing_live(filled: Shop, way: Way) -> None:
    before = live(filled)
    shadow = prepare(filled.pool, keeping(way), "keep", "rebuilt", copy_tables=["kept"])
    done = run(filled, way, shadow)
    assert (done.deliveries, done.failed, done.gone) == (9, 0, 0)
    assert live(filled) == before
    newest = {f"r{number}": max((n * 7) % 9 for n in range(9) if n % 3 == number) for number in range(3)}
    found = {one.resource: one for one in differences(filled.pool, shadow)}
    assert set(found) == {resource for resource, value in newest.items() if value}
    for resource, one in found.items():
        assert one.shadow is not None
        assert one.live is not None
        assert one.shadow["state"] == {"value": newest[resource]}
        assert one.live["state"] == {"value": 2 * newest[resource]}
    assert dict(filled.execute("SELECT id, value FROM rebuilt.kept")) == newest


def test_numbers_are_added_up_anew(filled: Shop, way: Way) -> None:
    shadow = prepare(filled.pool, keeping(way, factor=2), "add", "rebuilt")
    run(filled, way, shadow)
    assert list(differences(filled.pool, shadow)) == []
    mended = prepare(filled.pool, keeping(way), "add", "mended")
    run(filled, way, mended)
    assert len(list(differences(filled.pool, mended))) == 3
    assert len(list(differences(filled.pool, mended, most=2))) == 2


def test_what_the_live_ledger_has_changed_since_is_left_out(filled: Shop, way: Way) -> None:
    shadow = prepare(filled.pool, keeping(way), "add", "rebuilt")
    filled.record(document("later", "r1", 20, value=5), document("new", "r9", 20, value=5))
    way.work(filled.url, keeping(way, factor=2))
    assert run(filled, way, shadow).deliveries == 9
    assert {one.resource for one in differences(filled.pool, shadow)} == {"r0", "r2"}


def test_a_handler_that_writes_to_a_live_table_is_stopped(filled: Shop, way: Way) -> None:
    before = live(filled)
    shadow = prepare(filled.pool, keeping(way, factor=9, table="public.kept"), "keep", "rebuilt")
    with pytest.raises(HandlerError, match=r"wrote to public\.kept, which is not in the shadow"):
        run(filled, way, shadow)
    assert live(filled) == before


def test_failures_and_lost_bytes_are_counted(filled: Shop, way: Way) -> None:
    filled.execute("INSERT INTO hookledger.erased (delivery_id, who) VALUES (1, 'ann')")
    filled.execute("DELETE FROM hookledger.payloads WHERE id = 2")
    shadow = prepare(filled.pool, keeping(way, at=8), "keep", "rebuilt", copy_tables=["public.kept"])
    done = run(filled, way, shadow)
    assert (done.deliveries, done.failed, done.gone) == (7, 1, 2)
    assert filled.value("SELECT count(*) FROM rebuilt.failures") == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"handler": "nobody"}, "it has: add, keep"),
        ({"schema": "hookledger"}, "is the live ledger"),
        ({"schema": "pg_shadow"}, "not one that PostgreSQL takes"),
        ({"copy_tables": ["nothing"]}, "there is no table 'nothing'"),
    ],
)
def test_what_could_not_work_is_refused(given: dict[str, Any], words: str, shop: Shop) -> None:
    values = {"handler": "keep", "schema": "rebuilt", **given}
    with pytest.raises(SetupError, match=words):
        prepare(shop.pool, keeping(WAYS[0]), **values)
    assert not shop.value("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'rebuilt')")


def test_a_shadow_is_used_once(shop: Shop) -> None:
    prepare(shop.pool, keeping(WAYS[0]), "keep", "rebuilt")
    with pytest.raises(SetupError, match="holds a ledger already"):
        prepare(shop.pool, keeping(WAYS[0]), "keep", "rebuilt")
