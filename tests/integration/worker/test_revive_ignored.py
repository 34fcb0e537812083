"""Deliveries that were ignored are made pending when there is a handler for them (D11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from hookledger import Delivery, Inbox
from hookledger.ledger.repository import LARGEST_ID, Repository
from hookledger.ledger.statements import statements
from hookledger.worker import Worker, revive
from tests.concurrency.test_worker_claim_plans import nodes
from tests.integration.worker.writing import write, written
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop
from tests.processes import wait_until
from tests.ways import Way

Work = Callable[..., None]

EVENTS = [f"e{number}" for number in range(20)]


def older(way: Way) -> Inbox:
    """The inbox before there was a handler for things."""
    inbox = inbox_of_shop(first_delay=0.05)
    inbox.accumulate(SHOP, "other", name="other")(way.handler(lambda *_: None))
    return inbox


def newer(way: Way, body: Callable[[Delivery, Connection], Any] = write, **retry: Any) -> Inbox:
    """The inbox that has one."""
    inbox = inbox_of_shop(**{"first_delay": 0.05, **retry})
    inbox.accumulate(SHOP, "thing.*", name="write")(way.handler(body))
    inbox.snapshot(SHOP, "thing.*", name="save")(way.handler(lambda delivery, _: {"is": delivery.event_id}))
    return inbox


def ignore(way: Way, work: Work, ledger: Ledger, *events: str) -> None:
    """Have the events ignored."""
    ledger.record(*[document(event, f"r{number % 3}", number) for number, event in enumerate(events)])
    work(older(way), slots=1)
    assert ledger.outcomes_of("-") == dict.fromkeys(events, "ignored")
    assert ledger.pending() == {}


def test_each_is_applied_once_whatever_comes_in_pages(
    way: Way, work: Work, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revive, "PAGE", 7)
    ignore(way, work, ledger, *EVENTS)
    for _ in range(3):
        work(newer(way), slots=2, batch=4)
        ledger.check()
    assert ledger.outcomes_of("write") == dict.fromkeys(EVENTS, "applied")
    assert set(ledger.outcomes_of("save")) == set(EVENTS)
    assert written(ledger) == dict.fromkeys(EVENTS, 1)
    assert sorted(state.state["is"] for state in ledger.states("save").values()) == ["e17", "e18", "e19"]
    assert ledger.pending() == ledger.dead() == {}


def test_what_was_ignored_does_not_move_a_resource_back(way: Way, work: Work, ledger: Ledger) -> None:
    ignore(way, work, ledger, "e1")
    ledger.record(document("e2", "r0", 7))
    work(newer(way), slots=1, revive_ignored=0)
    work(newer(way), slots=1)
    assert ledger.outcomes_of("save") == {"e2": "applied", "e1": "stale"}
    assert ledger.outcomes_of("write") == {"e2": "applied", "e1": "applied"}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO hookledger.erased (delivery_id, who) SELECT delivery_id, 'x' FROM hookledger.effects",
        "UPDATE hookledger.effects SET applied_at = now() - interval '25 hours'",
        "DELETE FROM hookledger.payloads",
        "INSERT INTO hookledger.effects (source, event_id, handler, delivery_id, outcome)"
        " SELECT source, event_id, 'gone', delivery_id, 'applied' FROM hookledger.effects",
        "INSERT INTO hookledger.dead_letters SELECT delivery_id, now(), 3, 'failed', 'x', 'f' FROM hookledger.effects",
    ],
    ids=["erased", "too long ago", "payload dropped", "another outcome", "dead"],
)
def test_what_is_left_as_it_is(way: Way, work: Work, ledger: Ledger, statement: str) -> None:
    ignore(way, work, ledger, "e1")
    ledger.execute(statement)
    work(newer(way), slots=1)
    assert ledger.outcomes_of("write") == {}
    assert ledger.pending() == {}


def test_one_that_fails_then_is_not_made_pending_again(way: Way, work: Work, ledger: Ledger) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("no")

    ignore(way, work, ledger, "e1")
    inbox = newer(way, fail, max_attempts=1)
    del inbox.handlers["save"]
    for _ in range(2):
        work(inbox, slots=1)
        assert ledger.dead()["e1"].attempts == 1
        ledger.check()
    assert len(ledger.failures()) == 1


def test_an_older_worker_beside_it_only_delays_it(
    way: Way, work: Work, ledger: Ledger, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it takes away again is made pending at the next look."""
    monkeypatch.setattr(revive, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(revive, "LONGEST_PAUSE", 0.02)

    async def beside(_: Worker) -> None:
        await asyncio.to_thread(ledger.record, *map(document, EVENTS))
        await asyncio.to_thread(wait_until, lambda: len(ledger.outcomes_of("write")) == len(EVENTS))

    async def older_beside(_: Worker) -> None:
        await asyncio.to_thread(way.work, database_url, inbox, while_working=beside, slots=1)

    inbox = newer(way)
    del inbox.handlers["save"]
    way.work(database_url, older(way), while_working=older_beside, slots=2)
    assert written(ledger) == dict.fromkeys(EVENTS, 1)
    assert ledger.outcomes_of("write") == dict.fromkeys(EVENTS, "applied")
    ledger.check()


def test_another_that_was_stopped_while_it_looks_holds_up_nothing(way: Way, work: Work, ledger: Ledger) -> None:
    ignore(way, work, ledger, "e1")
    ledger.record(document("e2"))
    inbox = newer(way)
    del inbox.handlers["save"]
    with ledger.transaction() as silent:
        Repository.of("hookledger").revive_ignored(silent, [])
        work(inbox, slots=1)
    assert ledger.outcomes_of("write") == {"e2": "applied"}


def test_a_look_that_cannot_be_made_holds_up_nothing(way: Way, work: Work, ledger: Ledger) -> None:
    ignore(way, work, ledger, "e1")
    ledger.record(document("e2"))
    ledger.execute("CREATE RULE refuse AS ON INSERT TO hookledger.pending DO INSTEAD SELECT 1 / 0")
    inbox = newer(way)
    del inbox.handlers["save"]
    work(inbox, slots=1)
    assert ledger.outcomes_of("write") == {"e2": "applied"}
    ledger.execute("DROP RULE refuse ON hookledger.pending")
    work(inbox, slots=1)
    assert ledger.outcomes_of("write") == {"e1": "applied", "e2": "applied"}


def test_a_look_uses_the_index_of_the_outcomes(engine: Engine) -> None:
    rows = 20_000
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO hookledger.effects (source, event_id, handler, delivery_id, outcome) SELECT 's', 'e' || i,"
                f" '-', i, CASE WHEN i % 2 = 0 THEN 'ignored' ELSE 'applied' END FROM generate_series(1, {rows}) i"
            )
        )
        connection.execute(
            text(
                "INSERT INTO hookledger.deliveries"
                " (id, source, event_id, event_type, payload_id, received_at, body_digest)"
                f" SELECT i, 's', 'e' || i, 't', i, now(), '' FROM generate_series(1, {rows}) i"
            )
        )
        connection.execute(text("ANALYZE hookledger.effects, hookledger.deliveries"))
        given = {"before": LARGEST_ID, "most": revive.PAGE, "within": 86400.0}
        found = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statements('hookledger').find_ignored}", given)
        explained = found.scalar_one()
    (top,) = explained if isinstance(explained, list) else json.loads(explained)
    scans = [node for node in nodes(top["Plan"]) if node.get("Relation Name") == "effects"]
    assert {scan.get("Index Name") for scan in scans} == {"effects_outcome_idx"}, top
