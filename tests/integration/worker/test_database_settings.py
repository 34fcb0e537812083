"""Roles, sessions and schemas that are set up oddly: nothing is lost, and nobody is charged for it (D9, D12, D13)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from hookledger import Delivery, Inbox, migrate
from hookledger.worker import Worker
from tests.integration.worker.test_time import Gate, gated
from tests.integration.worker.writing import write, written
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop
from tests.processes import wait_until
from tests.ways import Way

Work = Callable[..., None]

EVENTS = [f"e{number}" for number in range(30)]


def with_options(database_url: str, **settings: str) -> str:
    """The URL with settings of the session, as a role or a pooler may have them."""
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    url = make_url(database_url)
    return url.update_query_dict({"options": options}).render_as_string(hide_password=False)


def working(way: Way, **options: Any) -> Inbox:
    """An inbox with a handler of each kind."""
    inbox = inbox_of_shop(**options)
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    inbox.accumulate(SHOP, name="add")(way.handler(lambda *_: {"n": 1}))
    inbox.snapshot(SHOP, name="save")(way.handler(lambda delivery, _: {"is": delivery.event_id}))
    return inbox


def record_all(ledger: Ledger) -> None:
    ledger.record(*[document(event, f"r{number % 3}", number) for number, event in enumerate(EVENTS)])


def check_all(ledger: Ledger, *, written_too: bool = True) -> None:
    assert ledger.failures() == []
    assert ledger.pending() == ledger.dead() == {}
    if written_too:
        assert written(ledger) == dict.fromkeys(EVENTS, 1)
    outcomes = Counter(ledger.outcomes_of("save").values())
    assert outcomes["applied"] >= 3
    assert outcomes.total() == len(EVENTS)
    assert {state.state["n"] for state in ledger.states("add").values()} == {10}
    assert sorted(state.state["is"] for state in ledger.states("save").values()) == ["e27", "e28", "e29"]
    ledger.check()


@pytest.mark.parametrize(
    "settings",
    [
        {"search_path": "nowhere"},
        {"search_path": "hookledger,pg_catalog"},
        {"TimeZone": "Australia/Lord_Howe"},
        {"IntervalStyle": "sql_standard"},
        {"bytea_output": "escape", "extra_float_digits": "0"},
        {"client_encoding": "LATIN1"},
        {"default_transaction_isolation": "serializable"},
        {"default_transaction_isolation": r"repeatable\ read"},
        {"plan_cache_mode": "force_generic_plan"},
        {"synchronous_commit": "off"},
        {"standard_conforming_strings": "on", "escape_string_warning": "on"},
    ],
    ids=lambda settings: ",".join(f"{name}={value}" for name, value in settings.items()),
)
def test_an_odd_session(way: Way, database_url: str, ledger: Ledger, settings: dict[str, str]) -> None:
    record_all(ledger)
    inbox = working(way)
    if settings.get("search_path"):
        # The application's own table is not in its search path either.
        inbox.handlers["write"] = working(way).handlers["add"]
        del inbox.handlers["write"]
    way.work(with_options(database_url, **settings), inbox, slots=1)
    check_all(ledger, written_too="search_path" not in settings)


@pytest.mark.parametrize("level", ["AUTOCOMMIT", "SERIALIZABLE", "REPEATABLE READ"])
def test_an_engine_with_another_isolation_level(way: Way, work: Work, ledger: Ledger, level: str) -> None:
    def make() -> Engine | AsyncEngine:
        url = make_url(ledger.engine.url)
        if way.async_engine:
            return create_async_engine(url, isolation_level=level)
        return create_engine(url, isolation_level=level)

    record_all(ledger)
    work(working(way), engine=make)
    check_all(ledger)


@pytest.mark.parametrize("level", ["AUTOCOMMIT", "SERIALIZABLE"])
def test_giving_up_a_handler_with_another_isolation_level(
    way: Way, database_url: str, ledger: Ledger, level: str
) -> None:
    gate = Gate()

    def make() -> Engine | AsyncEngine:
        url = make_url(ledger.engine.url)
        if way.async_engine:
            return create_async_engine(url, isolation_level=level)
        return create_engine(url, isolation_level=level)

    async def stop(worker: Worker) -> None:
        await gate.wait_for()
        worker.stop(now=True)

    ledger.record(document("e1"))
    try:
        way.work(database_url, gated(way, gate), while_working=stop, engine=make, slots=1)
        assert ledger.pending()["e1"][::2] == (0, None)
    finally:
        gate.opened.set()


def test_a_role_that_is_cut_off_while_idle_in_a_transaction(way: Way, database_url: str, ledger: Ledger) -> None:
    """A handler that does something else than SQL for longer than that must neither be lost nor run for ever."""
    record_all(ledger)
    inbox = working(way)
    slow: list[str] = []

    def body(delivery: Delivery, tx: Connection) -> None:
        if delivery.event_id in ("e3", "e20"):
            slow.append(delivery.event_id)
            time.sleep(0.3)  # it takes that long, by the server's clock, and nobody waits for it
        write(delivery, tx, "slow")

    inbox.accumulate(SHOP, name="slow")(way.handler(body))
    way.work(with_options(database_url, idle_in_transaction_session_timeout="100ms"), inbox, slots=1)
    assert written(ledger, "slow") == dict.fromkeys(EVENTS, 1)
    assert slow == ["e3", "e20"]
    check_all(ledger)


@pytest.mark.parametrize("name", ["statement_timeout", "lock_timeout"])
def test_a_role_with_a_low_timeout(
    way: Way, database_url: str, ledger: Ledger, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Another client holds what our statements need for longer than the limit; then it lets go."""
    record_all(ledger)

    def cancelled() -> int:
        return sum("canceling statement due to" in record.getMessage() for record in caplog.records)

    def hold_for_a_while() -> None:
        with ledger.transaction() as other:
            other.execute(text("LOCK TABLE hookledger.resource_state, hookledger.effects"))
            wait_until(lambda: cancelled() >= 3)
        wait_until(lambda: not ledger.pending())

    async def hold_beside(_: Worker) -> None:
        await asyncio.to_thread(hold_for_a_while)

    url = with_options(database_url, **{name: "150ms"})
    way.work(url, working(way), while_working=hold_beside, slots=2)
    check_all(ledger)


@pytest.fixture(params=["My-Hooks", 'odd "name" 100%s; it\'s', "Größe"])
def other_schema(request: pytest.FixtureRequest, ledger: Ledger) -> Ledger:
    schema: str = request.param
    migrate.upgrade(ledger.engine, schema=schema)
    return Ledger(ledger.engine.url.render_as_string(hide_password=False), schema)


def test_another_schema(way: Way, work: Work, ledger: Ledger, other_schema: Ledger) -> None:
    record_all(other_schema)
    ledger.record(document("elsewhere"))
    work(working(way, schema=other_schema.schema))
    check_all(other_schema)
    assert ledger.outcomes() == {}
    # Failing, dying and what else there is is found in that schema, too.
    other_schema.record(document("bad"))
    work(working(way, schema=other_schema.schema, max_attempts=1))
    assert other_schema.dead()["bad"].reason == "failed"
    assert {failure.event_id for failure in other_schema.failures()} == {"bad"}


@pytest.mark.parametrize("start", [2_147_483_640, 9_007_199_254_740_993])
def test_b049_ids_beyond_32_bits_and_beyond_what_a_float_holds(
    way: Way, work: Work, ledger: Ledger, start: int
) -> None:
    for table in ("payloads", "deliveries", "failures", "redeliveries"):
        ledger.execute(f"ALTER SEQUENCE hookledger.{table}_id_seq RESTART WITH {start}")
    record_all(ledger)
    work(working(way))
    check_all(ledger)
    assert ledger.value("SELECT min(id) FROM hookledger.deliveries") == start
    inbox = working(way, max_attempts=2)

    def body(delivery: Delivery, _: Connection) -> None:
        raise ValueError("no")

    inbox.accumulate(SHOP, name="fail")(way.handler(body))
    ledger.record(document("bad", "r9", 1))
    for _ in range(2):
        work(inbox)
        ledger.make_due()
    assert ledger.dead()["bad"].attempts == 2
    assert ledger.value("SELECT max(delivery_id) FROM hookledger.dead_letters") == start + len(EVENTS)
    # A crash is seen at such a number as well.
    ledger.record(document("crashed", "r9", 2))
    ledger.execute("UPDATE hookledger.pending SET attempts = 1")
    work(working(way))
    assert ledger.outcomes_of("save")["crashed"] == "applied"
    ledger.check()
