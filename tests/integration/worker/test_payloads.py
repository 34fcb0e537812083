"""Payloads: dropped by retention, large, and shared by many deliveries (D2, D5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection

from hookledger import Delivery
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import NewEvent, NewRequest
from hookledger.worker import received
from tests.integration.worker.writing import write, written
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop
from tests.ways import Way

Work = Callable[..., None]


def test_a_payload_that_is_gone_makes_a_dead_letter(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    inbox.snapshot(SHOP, name="save")(way.handler(lambda *_: None))
    ledger.record(document("gone", "r1", 1), document("there", "r1", 2))
    ledger.execute("DELETE FROM hookledger.payloads WHERE id = 1")
    work(inbox)
    dead = ledger.dead()
    assert dead["gone"].reason == "unreadable"
    assert "retention has dropped the payload" in dead["gone"].error
    assert written(ledger) == {"there": 1}
    ledger.check()


def test_one_that_was_settled_before_its_payload_went_stays_settled(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    ledger.record(document("e1"))
    work(inbox)
    ledger.execute("DELETE FROM hookledger.payloads")
    ledger.execute("INSERT INTO hookledger.pending (delivery_id) SELECT id FROM hookledger.deliveries")
    work(inbox)
    assert ledger.dead() == ledger.pending() == {}
    assert written(ledger) == {"e1": 1}


def test_what_nobody_handles_needs_no_payload(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, "other", name="write")(way.handler(write))
    ledger.record(document("e1"))
    ledger.execute("DELETE FROM hookledger.payloads")
    work(inbox)
    assert ledger.outcomes() == {("e1", "-"): "ignored"}


def test_exact_bytes_and_headers_reach_the_handler(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    seen: list[Any] = []

    def body(delivery: Delivery, _: Connection) -> None:
        seen.append((delivery.body, delivery.headers.get("x-sig") is not None, delivery.idempotency_key))

    inbox.accumulate(SHOP, name="see")(way.handler(body))
    sent = b' {"id": "e1",\r\n "n": "\xc3\xa9\\u0000", "type": "thing.updated"}\r\n'
    ledger.record(sent)
    work(inbox)
    assert seen == [(sent, True, "shop:e1")]


@pytest.mark.parametrize("size", [70_000, 3_000_000])
def test_large_bodies(way: Way, work: Work, ledger: Ledger, size: int) -> None:
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        assert len(delivery.data["more"]) == size
        write(delivery, tx)

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*[document(f"e{number}", more=str(number) * size) for number in range(6)])
    work(inbox)
    assert ledger.failures() == []
    assert written(ledger) == {f"e{number}": 1 for number in range(6)}


def test_more_than_fits_into_memory_at_once_comes_bit_by_bit(
    way: Way, work: Work, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(received, "LARGEST_READ", 250_000)
    inbox = inbox_of_shop()
    held: list[int] = []
    known = received.large_bodies

    def noted(rows: Any) -> Any:
        wanted = known(rows)
        held.append(len(wanted))
        return wanted

    monkeypatch.setattr("hookledger.worker.cycle.large_bodies", noted)

    def body(delivery: Delivery, tx: Connection) -> None:
        assert delivery.attempt == (3 if delivery.event_id == "e3" else 1)
        write(delivery, tx)

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*[document(f"e{number}", more="x" * 100_000) for number in range(9)])
    ledger.record(*[document(f"small{number}") for number in range(3)])
    # One that crashed waits for its body as well, and is not charged for that.
    ledger.execute("UPDATE hookledger.pending SET attempts = 2 WHERE delivery_id = 4")
    work(inbox, slots=1)
    assert ledger.failures() == []
    assert max(held) == 2
    assert written(ledger) == dict.fromkeys([f"e{number}" for number in range(9)] + [f"small{n}" for n in range(3)], 1)


def test_one_body_larger_than_all_that_fits_is_read_alone(
    way: Way, work: Work, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(received, "LARGEST_READ", 1)
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    ledger.record(*[document(f"e{number}", more="x" * 100_000) for number in range(3)])
    work(inbox)
    assert written(ledger) == {f"e{number}": 1 for number in range(3)}


def test_many_deliveries_of_one_payload_share_its_bytes(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    seen: list[bytes] = []

    def body(delivery: Delivery, _: Connection) -> None:
        seen.append(delivery.body)

    inbox.accumulate(SHOP, name="see")(way.handler(body))
    payload = json.dumps([{"id": f"e{number}", "more": "x" * 10_000} for number in range(50)]).encode()
    with ledger.engine.begin() as connection:
        events = [
            NewEvent(1, SHOP, f"e{number}", "thing.updated", None, None, number, bytes([number]), None)
            for number in range(50)
        ]
        Repository.of("hookledger").record(connection, [NewRequest("[]", payload)], events)
    work(inbox, slots=1)
    assert len(seen) == 50
    assert set(seen) == {payload}
    assert len({id(body) for body in seen}) == 1
