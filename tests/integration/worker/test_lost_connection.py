"""Connections that are lost in the middle of the work: nobody is charged, and each event has its effect once
(D6, D10, B040)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from hookledger import Delivery, Inbox
from hookledger.worker import Worker
from hookledger.worker.crashed import MOST_LOSSES
from tests.integration.worker.writing import write, written
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop
from tests.processes import wait_until
from tests.ways import Way

Work = Callable[..., None]

EVENTS = [f"e{number}" for number in range(30)]
CUT = "SELECT pg_terminate_backend(pg_backend_pid())"

# Where the server cuts the connection under the worker: (table, when, a condition on the row).
POINTS = {
    "in the claim": ("hookledger.pending", "BEFORE UPDATE", "NEW.attempts > OLD.attempts"),
    "in the commit of the claim": ("hookledger.pending", "DEFERRED UPDATE", "NEW.attempts > OLD.attempts"),
    "where states are made": ("hookledger.resource_state", "BEFORE INSERT", "NEW.handler = 'save'"),
    "in a handler": ("written", "BEFORE INSERT", "true"),
    "where states are saved": ("hookledger.resource_state", "BEFORE UPDATE", "NEW.handler = 'save'"),
    "where numbers are added": ("hookledger.resource_state", "BEFORE INSERT", "NEW.handler = 'add'"),
    "where effects are written": ("hookledger.effects", "BEFORE INSERT", "true"),
    "where a delivery is settled": ("hookledger.pending", "BEFORE DELETE", "true"),
    "where a failure is written": ("hookledger.failures", "BEFORE INSERT", "true"),
    "where a failed delivery is postponed": ("hookledger.pending", "BEFORE UPDATE", "NEW.last_error IS NOT NULL"),
    "in the commit": ("hookledger.effects", "DEFERRED INSERT", "true"),
}


def cut_at(ledger: Ledger, point: str, times: int) -> None:
    """Let the server cut the connection that comes to the point, so many times."""
    table, when, condition = POINTS[point]
    ledger.execute("CREATE SEQUENCE cuts")
    ledger.execute(
        f"""
        CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF {condition} AND nextval('cuts') <= {times} THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
            RETURN coalesce(NEW, OLD);
        END $$
        """
    )
    timing, _, action = when.partition(" ")
    if timing == "DEFERRED":
        kind, timing, more = "CONSTRAINT TRIGGER", "AFTER", "DEFERRABLE INITIALLY DEFERRED"
    else:
        kind, more = "TRIGGER", ""
    ledger.execute(f"CREATE {kind} cut {timing} {action} ON {table} {more} FOR EACH ROW EXECUTE FUNCTION cut()")


def all_kinds(way: Way) -> Inbox:
    """An inbox with a handler of each kind, and one that fails once for one event."""
    inbox = inbox_of_shop(first_delay=3600)

    def fail(delivery: Delivery, _: Connection) -> None:
        if delivery.event_id == "e7" and delivery.attempt == 1:
            raise ValueError("no")

    inbox.snapshot(SHOP, name="save")(way.handler(lambda delivery, _: {"is": delivery.event_id}))
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    inbox.accumulate(SHOP, name="add")(way.handler(lambda *_: {"n": 1}))
    inbox.accumulate(SHOP, name="fail")(way.handler(fail))
    return inbox


@pytest.mark.parametrize("point", POINTS)
def test_b040_wherever_it_is_lost(way: Way, work: Work, ledger: Ledger, point: str) -> None:
    ledger.record(*[document(event, f"r{number % 3}", number) for number, event in enumerate(EVENTS)])
    cut_at(ledger, point, times=2)
    work(all_kinds(way), slots=1, batch=10)
    assert ledger.value("SELECT last_value FROM cuts") >= 2
    # The one that failed was tried once, as far as it knows.
    assert ledger.pending()["e7"].attempts == 1
    assert ledger.failures() == [("e7", 1, "fail", "ValueError: no")]
    ledger.make_due()
    work(all_kinds(way), slots=1)
    assert ledger.pending() == ledger.dead() == {}
    assert written(ledger) == dict.fromkeys(EVENTS, 1)
    assert {state.state["n"] for state in ledger.states("add").values()} == {10}
    assert sorted(state.state["is"] for state in ledger.states("save").values()) == ["e27", "e28", "e29"]
    for handler in ("write", "add", "fail"):
        assert ledger.outcomes_of(handler) == dict.fromkeys(EVENTS, "applied")
    ledger.check()


@pytest.mark.parametrize("swallowed", [False, True])
def test_a_connection_that_is_lost_under_a_handler_is_not_its_failure(
    way: Way, work: Work, ledger: Ledger, swallowed: bool
) -> None:
    inbox = inbox_of_shop()
    runs: list[str] = []

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx)
        runs.append(delivery.event_id)
        if runs.count("e5") == 1 and delivery.event_id == "e5":
            try:
                tx.execute(text(CUT))
            except DBAPIError as error:
                if not swallowed:
                    raise LookupError("in other words") from error

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*map(document, EVENTS))
    work(inbox, slots=1)
    assert ledger.failures() == []
    assert written(ledger) == dict.fromkeys(EVENTS, 1)
    assert runs.count("e5") == 2
    assert ledger.pending() == {}


def test_a_connection_that_was_cut_while_a_handler_did_something_else(way: Way, work: Work, ledger: Ledger) -> None:
    """The handler never notices; we do, at our next statement."""
    inbox = inbox_of_shop()
    runs: list[str] = []

    def body(delivery: Delivery, tx: Connection) -> None:
        runs.append(delivery.event_id)
        if delivery.event_id == "e5" and runs.count("e5") == 1:
            ledger.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND state = 'idle in transaction'"
            )
            raise LookupError("and it fails, too")

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*map(document, EVENTS))
    work(inbox, slots=1)
    assert ledger.failures() == []
    assert runs.count("e5") == 2
    assert ledger.outcomes_of("write") == dict.fromkeys(EVENTS, "applied")


def test_a_handler_that_brings_the_server_down_each_time_is_given_up(way: Way, work: Work, ledger: Ledger) -> None:
    """Nobody can tell its first times from a restart; but it does not go on for ever, and costs nobody else."""
    inbox = inbox_of_shop(max_attempts=2)
    runs: list[int] = []

    def body(delivery: Delivery, tx: Connection) -> None:
        if delivery.event_id == "e5":
            runs.append(delivery.attempt)
            tx.execute(text(CUT))
        write(delivery, tx)

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*map(document, EVENTS))
    for _ in range(10):
        work(inbox, slots=1)
        ledger.make_due()
        if not ledger.pending():
            break
    assert ledger.dead()["e5"].reason == "crashed"
    assert len(runs) <= 3 * MOST_LOSSES
    assert written(ledger) == {event: 1 for event in EVENTS if event != "e5"}
    assert ledger.failures() == []
    ledger.check()


@pytest.mark.parametrize("point", ["in a handler", "in the commit"])
def test_a_deadlock_is_charged_to_nobody(way: Way, work: Work, ledger: Ledger, point: str) -> None:
    table, when, _ = POINTS[point]
    ledger.execute("CREATE SEQUENCE conflicts")
    ledger.execute(
        """
        CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('conflicts') % 7 = 3 THEN RAISE deadlock_detected; END IF; RETURN NEW;
        END $$
        """
    )
    deferred = "DEFERRABLE INITIALLY DEFERRED" if "DEFERRED" in when else ""
    kind, timing = ("CONSTRAINT TRIGGER", "AFTER") if deferred else ("TRIGGER", "BEFORE")
    ledger.execute(
        f"CREATE {kind} conflict {timing} INSERT ON {table} {deferred} FOR EACH ROW EXECUTE FUNCTION conflict()"
    )
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    ledger.record(*map(document, EVENTS))
    work(inbox, slots=2, batch=10)
    assert ledger.failures() == []
    assert written(ledger) == dict.fromkeys(EVENTS, 1)
    assert ledger.pending() == {}


def test_a_deadlock_in_a_savepoint_of_the_handler_is_charged_to_nobody(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    runs: list[str] = []

    def body(delivery: Delivery, tx: Connection) -> None:
        runs.append(delivery.event_id)
        with tx.begin_nested():
            write(delivery, tx)
            if runs.count("e5") == 1:
                tx.execute(text("DO $$ BEGIN RAISE serialization_failure; END $$"))

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*map(document, EVENTS[:10]))
    work(inbox, slots=1)
    assert ledger.failures() == []
    assert written(ledger) == dict.fromkeys(EVENTS[:10], 1)


def test_one_that_meets_a_deadlock_for_ever_holds_up_nobody(way: Way, database_url: str, ledger: Ledger) -> None:
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx)
        if delivery.event_id == "e5":
            tx.execute(text("DO $$ BEGIN RAISE serialization_failure; END $$"))

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*map(document, EVENTS))

    async def until_the_others_are_done(_: Worker) -> None:
        await asyncio.to_thread(wait_until, lambda: len(ledger.outcomes()) == len(EVENTS) - 1)

    way.work(database_url, inbox, while_working=until_the_others_are_done, slots=1)
    assert written(ledger) == {event: 1 for event in EVENTS if event != "e5"}
    assert ledger.failures() == []
    assert list(ledger.pending()) == ["e5"]


def test_a_pool_of_one_connection_is_enough_for_one_slot(way: Way, database_url: str, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    ledger.record(*map(document, EVENTS))
    make = create_async_engine if way.async_engine else create_engine
    way.work(database_url, inbox, engine=lambda: make(database_url, pool_size=1, max_overflow=0), slots=1)
    assert written(ledger) == dict.fromkeys(EVENTS, 1)
