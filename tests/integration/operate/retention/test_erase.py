"""Erasing takes what requests said, and leaves that they came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookledger.operate.filters import Filter
from hookledger.operate.retention import erase as erasing
from hookledger.operate.retention.erase import Erased, erase
from tests.aged import bury, settle
from tests.outcomes import Ledger, document, inbox_of_shop
from tests.receiving import Receiving, many, shop, signed
from tests.ways import WAYS

JANE = "jane@example.com"


def run(ledger: Ledger, wanted: Filter, **options: Any) -> Erased:
    return erase(ledger.engine, "hookledger", wanted, who="somebody", **options)


def work(ledger: Ledger, inbox: Any) -> None:
    WAYS[0].work(ledger.engine.url.render_as_string(hide_password=False), inbox)


def told(ledger: Ledger) -> str:
    """All that the ledger holds, as text: what was erased must not be found in it."""
    tables = ["payloads", "deliveries", "redeliveries", "failures", "dead_letters", "effects", "resource_state"]
    rows = [ledger.execute(f"SELECT t::text FROM hookledger.{name} AS t") for name in tables]
    bodies = [bytes(row.body) for row in ledger.execute("SELECT body FROM hookledger.payloads")]
    return " ".join([row[0] for each in rows for row in each]) + " ".join(body.decode() for body in bodies)


def test_nothing_of_what_was_said_is_left_and_a_copy_is_known(ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    inbox.snapshot("shop", name="mirror")(lambda delivery, tx: {"email": delivery.data["email"]})
    ledger.record(document("e1", "r1", 1, email=JANE), document("e2", "r2", 1, email="other@example.com"))
    work(ledger, inbox)

    erased = run(ledger, Filter(resource="r1"))

    assert (erased.deliveries, erased.states, erased.pending) == (1, 1, 0)
    assert JANE not in told(ledger)
    assert "other@example.com" in told(ledger)
    assert ledger.states()["r1"].version == (1,)
    assert ledger.outcomes()[("e1", "mirror")] == "applied"
    assert ledger.value("SELECT who FROM hookledger.erased WHERE delivery_id = 1") == "somebody"
    assert ledger.record(document("e1", "r1", 1, email=JANE)) == []
    assert ledger.record(document("e3", "r1", 0, email="old")) != []
    work(ledger, inbox)
    assert ledger.outcomes()[("e3", "mirror")] == "stale"


def test_redeliveries_and_the_texts_of_errors_are_erased_too(ledger: Ledger, database_url: str) -> None:
    with Receiving("threads", database_url) as receiving:
        receiving.post(signed(shop(), {"id": "e1", "type": "t", "who": "first"}))
        receiving.post(signed(shop(), {"id": "e1", "type": "t", "who": JANE}, [("X-Who", JANE)]))
    columns = "delivery_id, attempt, handler, error, fingerprint"
    ledger.execute(f"INSERT INTO hookledger.failures ({columns}) VALUES (1, 1, 'h', 'no such: {JANE}', 'f')")
    bury(ledger, "e1")

    run(ledger, Filter(ids=(1,)))

    assert JANE not in told(ledger)
    assert "first" not in told(ledger)
    assert ledger.dead()["e1"].error == "erased"
    assert ledger.value("SELECT fingerprint FROM hookledger.dead_letters") == "f"


def test_what_is_pending_is_left(ledger: Ledger) -> None:
    ledger.record(document("e1", "r1"), document("e2", "r1"))
    settle(ledger, "e1")

    erased = run(ledger, Filter(resource="r1"))

    assert (erased.deliveries, erased.pending) == (1, 1)
    assert '"e2"' in told(ledger)
    assert '"e1"' not in told(ledger)


def test_an_erased_delivery_that_runs_again_is_a_dead_letter_that_says_so(ledger: Ledger) -> None:
    ran: list[int] = []
    inbox = inbox_of_shop()
    inbox.accumulate("shop", name="other")(lambda delivery, tx: ran.append(delivery.id))
    ledger.record(document("e1"))
    settle(ledger, "e1")
    run(ledger, Filter(ids=(1,)))
    ledger.execute("INSERT INTO hookledger.pending (delivery_id, revisited) VALUES (1, true)")

    work(ledger, inbox)

    assert ran == []
    assert ledger.dead()["e1"].reason == "unreadable"
    assert "or it was erased" in ledger.dead()["e1"].error


def test_deliveries_of_one_request_share_its_bytes_and_so_their_end(
    ledger: Ledger, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "NEAR", 3)
    with Receiving("threads", database_url) as receiving:
        receiving.post(signed(many(), [{"id": f"e{number}", "type": "t"} for number in range(20)]))
        receiving.post(signed(many(), [{"id": "apart", "type": "t"}]))
        receiving.post(signed(many(), [{"id": "f1", "type": "t"}, {"id": "f2", "type": "t"}]))
    settle(ledger, *[f"e{number}" for number in range(20)], "apart", "f1")

    erased = run(ledger, Filter(event_id="e7"))
    with_pending = run(ledger, Filter(event_id="f1"))

    assert (erased.deliveries, erased.with_them) == (1, 19)
    assert ledger.value("SELECT count(*) FROM hookledger.erased") == 20
    assert (with_pending.deliveries, with_pending.pending) == (0, 1)
    bodies = [bytes(row.body) for row in ledger.execute("SELECT body FROM hookledger.payloads ORDER BY id")]
    assert bodies[0] == b""
    assert json.loads(bodies[1])[0]["id"] == "apart"
    assert json.loads(bodies[2])[1]["id"] == "f2"


def test_a_dry_run_counts_and_changes_nothing(ledger: Ledger) -> None:
    ledger.record(*[document(f"e{number}", "r1") for number in range(120)])
    settle(ledger, *[f"e{number}" for number in range(120)])

    counted = run(ledger, Filter(source="shop"), dry_run=True)

    assert counted.deliveries == 120
    assert ledger.value("SELECT count(*) FROM hookledger.erased") == 0
    assert run(ledger, Filter(source="shop")).deliveries == 120
    assert run(ledger, Filter(source="shop")).deliveries == 0


def test_more_deliveries_came_in_the_requests_than_a_statement_takes_parameters(ledger: Ledger) -> None:
    ledger.record(document("e1", "r1", 1, email=JANE))
    settle(ledger, "e1")
    ledger.execute(
        "INSERT INTO hookledger.deliveries (source, event_id, event_type, payload_id, received_at, body_digest)"
        " SELECT source, 'n' || n, event_type, payload_id, received_at, body_digest"
        " FROM hookledger.deliveries, generate_series(1, 70000) AS n"
    )

    erased = run(ledger, Filter(ids=(1,)))

    assert (erased.deliveries, erased.with_them) == (1, 70_000)
    assert JANE not in bytes(ledger.value("SELECT body FROM hookledger.payloads")).decode()
