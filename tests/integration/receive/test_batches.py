"""Many events in one request: one payload, a delivery an item, one transaction (D5)."""

from __future__ import annotations

import json
from typing import Any

from tests.ledger import Ledger
from tests.receiving import Receiving, many, signed


def item(event_id: Any, **fields: Any) -> dict[str, Any]:
    return {"id": event_id, "type": "mail.opened", **fields}


def test_a_batch_is_one_payload_and_a_delivery_an_item(receiving: Receiving, ledger: Ledger) -> None:
    request = signed(many(), [item("e1"), item("e2"), item("e3")])
    assert receiving.post(request).status == 200
    assert [(row.event_id, row.position, row.body) for row in ledger.deliveries()] == [
        ("e1", 0, request.body),
        ("e2", 1, request.body),
        ("e3", 2, request.body),
    ]
    assert ledger.count("payloads") == 1
    assert ledger.pending() == ["e1", "e2", "e3"]


def test_b027_overlapping_batches_record_each_event_once(receiving: Receiving, ledger: Ledger) -> None:
    e1, e2, e3 = item("e1"), item("e2"), item("e3")
    for batch in ([e1, e2], [e2, e3], [e1, e2, e3], *[[e1]] * 46):
        assert receiving.post(signed(many(), batch)).status == 200
    assert ledger.event_ids() == ["e1", "e2", "e3"]
    assert ledger.pending() == ["e1", "e2", "e3"]
    copies = ledger.redeliveries()
    assert len(copies) == 1 + 3 + 46
    assert not any(copy.differs for copy in copies), "an equal item is no conflict, whatever stands beside it"
    assert ledger.count("payloads") == 2, "a batch that brought nothing new is not stored again"
    assert ledger.consistent()


def test_b027_overlapping_batches_at_once_record_each_event_once(receiving: Receiving, ledger: Ledger) -> None:
    batches = [[item(f"e{(start + step) % 50}") for step in range(20)] for start in range(100)]
    backwards = [list(reversed(batch)) for batch in batches]
    answers = receiving.post_all([signed(many(), batch) for batch in [*batches, *backwards]])
    assert {answer.status for answer in answers} == {200}
    assert sorted(ledger.event_ids()) == sorted(f"e{number}" for number in range(50))
    assert ledger.count("redeliveries") == 200 * 20 - 50
    assert ledger.consistent()


def test_an_event_twice_in_one_batch_is_one_event(receiving: Receiving, ledger: Ledger) -> None:
    assert receiving.post(signed(many(), [item("e1"), item("e2"), item("e1"), item("e1", n=2)])).status == 200
    assert [(row.event_id, row.position) for row in ledger.deliveries()] == [("e1", 0), ("e2", 1)]
    assert [(copy.event_id, copy.differs) for copy in ledger.redeliveries()] == [("e1", False), ("e1", True)]
    assert ledger.consistent()


def test_equal_items_without_an_id_are_different_events_but_a_repeated_batch_is_not(
    receiving: Receiving, ledger: Ledger
) -> None:
    request = signed(many(), [item(""), item(None), item("")])
    assert receiving.post(request).status == 200
    assert ledger.count("deliveries") == 3
    assert receiving.post(request).status == 200
    assert ledger.count("deliveries") == 3
    assert ledger.count("redeliveries") == 3


def test_an_unreadable_item_is_dead_and_its_neighbours_are_not(receiving: Receiving, ledger: Ledger) -> None:
    assert receiving.post(signed(many(), [item("e1"), 5, item("e2"), None])).status == 200
    assert ledger.pending() == ["e1", "e2"]
    assert [dead.error for dead in ledger.dead()] == ["the item is no object"] * 2
    assert [row.position for row in ledger.deliveries()] == [0, 1, 2, 3]
    assert ledger.consistent()


def test_an_empty_batch_is_accepted_and_leaves_nothing(receiving: Receiving, ledger: Ledger) -> None:
    assert receiving.post(signed(many(), [])).status == 200
    assert ledger.count("payloads") == 0


def test_a_batch_with_known_and_new_events_is_one_transaction(receiving: Receiving, ledger: Ledger) -> None:
    assert receiving.post(signed(many(), [item("e1"), item("e2")])).status == 200
    ledger.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no copies of this one'; END $$"
    )
    ledger.run("CREATE TRIGGER refuse BEFORE INSERT ON redeliveries FOR EACH ROW EXECUTE FUNCTION refuse()")
    assert receiving.post(signed(many(), [item("e2"), item("e3")])).status == 503
    assert ledger.event_ids() == ["e1", "e2"], "nothing of a request that was refused is stored"
    ledger.run("DROP TRIGGER refuse ON redeliveries")
    assert receiving.post(signed(many(), [item("e2"), item("e3")])).status == 200
    assert ledger.event_ids() == ["e1", "e2", "e3"]


def test_a_large_batch_that_comes_again_is_sent_to_the_database_once(receiving: Receiving, ledger: Ledger) -> None:
    """Once a copy, these would be 3 GiB."""
    batch = [item(f"e{number}", note="x" * 1000) for number in range(1500)]
    batch[0]["note"] = "x" * 500_000
    assert receiving.post(signed(many(), batch)).status == 200
    assert receiving.post(signed(many(), batch)).status == 200
    assert ledger.count("redeliveries") == 1500
    assert ledger.count("payloads") == 1


def test_the_bytes_of_a_differing_batch_are_kept_once(receiving: Receiving, ledger: Ledger) -> None:
    assert receiving.post(signed(many(), [item(f"e{number}", v=1) for number in range(5)])).status == 200
    second = signed(many(), [item(f"e{number}", v=2) for number in range(5)])
    third = signed(many(), [item(f"e{number}", v=number) for number in range(3)])
    assert [answer.status for answer in receiving.post_all([second, third])] == [200, 200]
    differing = {copy.body for copy in ledger.redeliveries() if copy.differs}
    assert differing == {second.body, third.body}
    assert ledger.count("payloads") == 3
    assert len(ledger.redeliveries()) == 8


def test_a_batch_of_very_many_events_is_accepted(receiving: Receiving, ledger: Ledger) -> None:
    body = json.dumps([item(f"e{number}") for number in range(20_000)]).encode()
    assert receiving.post(signed(many(), body)).status == 200
    assert ledger.count("deliveries") == 20_000
    assert ledger.count("pending") == 20_000
