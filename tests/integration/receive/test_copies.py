"""One event, one row, whatever is sent how often; and every copy is seen (D4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookledger.http import Headers, Request
from hookledger.inbox import Inbox
from hookledger.sources import github
from tests.integration.receive.conftest import MakeReceiving
from tests.ledger import Ledger
from tests.receiving import Receiving, event, many, shop, signed


def test_b021_the_same_id_at_two_sources_is_two_events(make_receiving: MakeReceiving, ledger: Ledger) -> None:
    first, second = github("app-a", secrets="secret of a"), github("app-b", secrets="secret of b")
    receiving = make_receiving(inbox=Inbox(first, second))
    for source, body in ((first, b'{"zen":1}'), (second, b'{"zen":2}')):
        request = signed(source, body)
        lines = [line for line in request.headers if line[0] != "X-GitHub-Delivery"]
        sent = Request(source.name, "POST", Headers([*lines, ("X-GitHub-Delivery", "d-1")]), body)
        assert receiving.post(sent).status == 200
    assert [(row.source, row.event_id, row.body) for row in ledger.deliveries()] == [
        ("app-a", "d-1", b'{"zen":1}'),
        ("app-b", "d-1", b'{"zen":2}'),
    ]
    assert ledger.redeliveries() == []


def test_b022_a_copy_of_a_settled_delivery_is_recorded_and_changes_nothing(
    receiving: Receiving, ledger: Ledger
) -> None:
    assert receiving.post(event("d-2")).status == 200
    ledger.settle("d-2")
    assert receiving.post(event("d-2")).status == 200
    assert ledger.pending() == []
    assert ledger.count("effects") == 1
    assert [(copy.event_id, copy.differs) for copy in ledger.redeliveries()] == [("d-2", False)]
    assert ledger.consistent()


@pytest.mark.parametrize("reason", ["failed", "crashed", "rejected"])
def test_b022_a_copy_of_a_dead_delivery_revives_it(receiving: Receiving, ledger: Ledger, reason: str) -> None:
    assert [answer.status for answer in receiving.post_all([event("d-3"), event("d-4")])] == [200, 200]
    ledger.bury("d-3", reason)
    ledger.bury("d-4", reason)
    assert receiving.post(event("d-3")).status == 200
    assert ledger.pending() == ["d-3"]
    assert [dead.event_id for dead in ledger.dead()] == ["d-4"]
    (row,) = ledger.run("SELECT attempts, last_error, due_at <= clock_timestamp() AS due FROM pending")
    assert tuple(row) == (0, None, True), "it begins anew, and at once"
    assert ledger.count("redeliveries") == 1
    assert ledger.consistent()


def test_many_copies_of_many_dead_deliveries_at_once_revive_each_once(receiving: Receiving, ledger: Ledger) -> None:
    events = [event(f"e{number}") for number in range(20)]
    receiving.post_all(events)
    for number in range(20):
        ledger.bury(f"e{number}")
    copies = [*events, *reversed(events), *events]
    assert [answer.status for answer in receiving.post_all(copies)] == [200] * 60
    assert sorted(ledger.pending()) == sorted(f"e{number}" for number in range(20))
    assert ledger.count("redeliveries") == 60
    assert ledger.consistent()


def test_a_copy_of_a_pending_delivery_leaves_it_as_it_is(receiving: Receiving, ledger: Ledger) -> None:
    assert receiving.post(event("e1")).status == 200
    ledger.run("UPDATE pending SET attempts = 3, last_error = 'it failed', due_at = due_at + interval '1 hour'")
    before = ledger.run("SELECT * FROM pending")
    assert receiving.post(event("e1")).status == 200
    assert ledger.run("SELECT * FROM pending") == before


def test_a_copy_leaves_the_row_of_the_delivery_alone(receiving: Receiving, ledger: Ledger) -> None:
    assert receiving.post(event("e1")).status == 200
    row = "SELECT ctid::text, xmin::text, xmax::text FROM deliveries"
    before = ledger.run(row)
    assert {answer.status for answer in receiving.post_all([event("e1")] * 10)} == {200}
    assert ledger.run(row) == before


def test_an_unreadable_delivery_is_not_revived(receiving: Receiving, ledger: Ledger) -> None:
    for _ in range(2):
        assert receiving.post(signed(shop(), b"no JSON")).status == 200
    assert [dead.reason for dead in ledger.dead()] == ["unreadable"]
    assert ledger.pending() == []


def test_b024_the_id_in_the_body_counts_and_every_attempt_is_listed(receiving: Receiving, ledger: Ledger) -> None:
    body = b'{"id":"evt_9"}'
    for attempt in ("a1", "a2", "a3"):
        assert receiving.post(signed(shop(), body, [("X-Delivery", attempt)])).status == 200
    assert ledger.event_ids() == ["evt_9"]
    attempts = [Headers(ledger.delivery("evt_9").headers), *[Headers(copy.headers) for copy in ledger.redeliveries()]]
    assert [headers.get("x-delivery") for headers in attempts] == ["a1", "a2", "a3"]


def test_b025_a_differing_copy_is_kept_apart_and_not_run(
    receiving: Receiving, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = signed(shop(), {"id": "evt_5", "v": 1}), signed(shop(), {"id": "evt_5", "v": 2})
    assert receiving.post(first).status == 200
    assert receiving.post(second).status == 200
    assert receiving.post(Request("shop", "POST", first.headers, second.body)).status == 401
    assert [(row.event_id, row.body) for row in ledger.deliveries()] == [("evt_5", first.body)]
    assert [(copy.event_id, copy.differs, copy.body) for copy in ledger.redeliveries()] == [
        ("evt_5", True, second.body)
    ]
    assert ledger.pending() == ["evt_5"]
    assert [record.message for record in caplog.records if "another body" in record.message]


def test_b025_a_differing_copy_does_not_revive(receiving: Receiving, ledger: Ledger) -> None:
    assert receiving.post(event("evt_5", v=1)).status == 200
    ledger.bury("evt_5")
    assert receiving.post(event("evt_5", v=2)).status == 200
    assert ledger.pending() == []
    assert [dead.event_id for dead in ledger.dead()] == ["evt_5"]


@pytest.mark.parametrize("number", [0, 1], ids=["shop", "by header"])
def test_b026_events_without_an_id_are_no_duplicates_of_each_other(
    make_receiving: MakeReceiving, ledger: Ledger, number: int
) -> None:
    source = [shop(), shop(event_id="header:X-Event-Id")][number]
    receiving = make_receiving(inbox=Inbox(source))
    blank: list[Any] = ["", None, 0, " ", "\t\n", {}, [], False, True, 1.5, "\u3000", -0.0]
    documents = [{"id": each, "type": type} for each in blank for type in ("a", "b")]
    documents += [{"type": "a"}, {"type": "b"}, {"type": "c"}]
    bodies = [json.dumps(document).encode() for document in documents]
    for body in bodies:
        headers = [("X-Event-Id", " ")] if number else []
        assert receiving.post(signed(source, body, headers)).status == 200
    assert [row.body for row in ledger.deliveries()] == bodies
    assert ledger.redeliveries() == []
    assert len(ledger.pending()) == len(bodies)
    assert all(event_id.startswith("sha256:") for event_id in ledger.event_ids())


def test_b026_the_same_bytes_without_an_id_are_the_same_event(receiving: Receiving, ledger: Ledger) -> None:
    body = b'{"id":"","type":"a"}'
    assert [receiving.post(signed(shop(), body)).status for _ in range(2)] == [200, 200]
    assert ledger.count("deliveries") == 1
    assert ledger.count("redeliveries") == 1


def test_b026_a_body_is_no_copy_of_an_item_with_the_same_bytes(receiving: Receiving, ledger: Ledger) -> None:
    """Found by fuzzing: a body that could not be read was answered with 2xx as a copy of an item, and not stored."""
    bodies = [b"[5]", b"5"]
    for body in bodies:
        assert receiving.post(signed(many(), body)).status == 200
    assert [row.body for row in ledger.deliveries()] == bodies
    assert [dead.reason for dead in ledger.dead()] == ["unreadable"] * 2
    assert ledger.redeliveries() == []
    assert ledger.consistent()


def test_copies_that_come_together_are_one_event(receiving: Receiving, ledger: Ledger) -> None:
    requests = [event(f"e{number % 10}") for number in range(200)]
    assert {answer.status for answer in receiving.post_all(requests)} == {200}
    assert sorted(ledger.event_ids()) == sorted(f"e{number}" for number in range(10))
    assert ledger.count("redeliveries") == 190
    assert ledger.count("payloads") == 10
    assert ledger.consistent()


def test_an_event_that_is_deleted_while_its_copy_comes_is_recorded_anew(receiving: Receiving, ledger: Ledger) -> None:
    """Never 2xx without a row: whoever tidies up by hand may take it away between the two statements."""
    assert receiving.post(event("e1")).status == 200
    ledger.run(
        "CREATE FUNCTION skip_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF nextval('hookledger.times') > 1 THEN RETURN NEW; END IF; RETURN NULL; END $$"
    )
    ledger.run("CREATE SEQUENCE times")
    ledger.run("CREATE TRIGGER skip_once BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION skip_once()")
    ledger.run("DELETE FROM pending")
    ledger.run("DELETE FROM deliveries")
    assert receiving.post(event("e1")).status == 200
    assert ledger.event_ids() == ["e1"]
    assert ledger.pending() == ["e1"]
