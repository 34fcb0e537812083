"""Deliveries found by each filter, page by page."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from hookledger.operate.filters import Filter, State
from hookledger.operate.find import find, find_all, find_ids
from hookledger.outcomes import Outcome
from tests.outcomes import Ledger, document
from tests.shop_history import BROKEN, OTHER, live_through

SCHEMA = "hookledger"
ALL = ["w1", "o3", "o2", "o1", "t0", "t4", "t1", "x1", "t3", "t2"]
LONG_AGO, LATER = datetime(2001, 1, 1, tzinfo=UTC), datetime.now(UTC) + timedelta(days=365)


def events(operator: Engine, wanted: Filter) -> list[str]:
    with operator.connect() as connection:
        return [found.event_id for found in find(connection, SCHEMA, wanted).deliveries]


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ALL),
    ({"source": OTHER}, ["w1"]),
    ({"source": "no such"}, []),
    ({"event_type": "order.paid"}, ["o2", "o1"]),
    ({"event_type": "order.*"}, ["o3", "o2", "o1"]),
    ({"event_type": "order_*"}, ["w1"]),
    ({"event_type": "*thing*"}, ["t0", "t4", "t1", "x1", "t3", "t2"]),
    ({"event_type": "%"}, []),
    ({"resource": "r1"}, ["t0", "t4", "t1", "t3", "t2"]),
    ({"event_id": "o2"}, ["o2"]),
    ({"event_id": "o2\x00"}, []),
    ({"ids": ()}, []),
    ({"outcome": Outcome.APPLIED}, ["o1", "t4", "t3"]),
    ({"outcome": Outcome.STALE}, ["t0", "t1"]),
    ({"outcome": Outcome.SUPERSEDED}, ["t2"]),
    ({"outcome": Outcome.IGNORED}, ["x1"]),
    ({"state": State.PENDING}, ["w1", "o3"]),
    ({"state": State.DEAD}, ["o2"]),
    ({"state": State.SETTLED}, ["o1", "t0", "t4", "t1", "x1", "t3", "t2"]),
    ({"received_since": LONG_AGO, "received_until": LATER}, ALL),
    ({"received_since": LATER}, []),
    ({"received_until": LONG_AGO}, []),
    ({"settled_since": LONG_AGO}, ["o1", "t0", "t4", "t1", "x1", "t3", "t2"]),
    ({"settled_since": LATER}, []),
    ({"settled_until": LATER, "outcome": Outcome.STALE}, ["t0", "t1"]),
    ({"settled_until": LONG_AGO, "outcome": Outcome.STALE}, []),
    ({"fingerprint": "no such"}, []),
    ({"text": "Käse 100%"}, ["o1"]),
    ({"text": "for good"}, ["o2"]),
    ({"text": "FOR GOOD"}, []),
    ({"text": "\ud800"}, []),
    ({"state": State.DEAD, "text": "for now"}, []),
]


def test_each_filter_lets_through_what_it_says(ledger: Ledger, operator: Engine) -> None:
    ids = live_through(ledger)
    for given, expected in FILTERS:
        wanted = Filter(**given)
        assert events(operator, wanted) == expected, given
        assert Filter.of_document(wanted.as_document()) == wanted
    assert events(operator, Filter(ids=(ids["t1"], ids["o2"], 2**62))) == ["o2", "t1"]
    # A dead letter has its mark, and so has one that was tried again.
    for event in ("o2", "o3"):
        mark = ledger.value("SELECT fingerprint FROM hookledger.failures WHERE delivery_id = :id", id=ids[event])
        assert events(operator, Filter(fingerprint=mark)) == [event]


def test_rows_say_what_became_of_a_delivery(ledger: Ledger, operator: Engine) -> None:
    live_through(ledger)
    with operator.connect() as connection:
        found = {each.event_id: each for each in find(connection, SCHEMA).deliveries}
    assert found["t2"].outcomes == {"save": "superseded"}
    assert found["t2"].settled_at is not None
    assert found["x1"].outcomes == {"-": "ignored"}
    assert (found["o2"].state, found["o2"].reason, found["o2"].attempts) == (State.DEAD, "rejected", 1)
    assert BROKEN in (found["o2"].error or "")
    assert found["o3"].state is State.PENDING
    assert found["o3"].due_at is not None
    assert BROKEN in (found["o3"].error or "")
    assert (found["w1"].attempts, found["w1"].error, found["w1"].parked) == (0, None, False)


def test_pages_follow_each_other_while_more_arrives(ledger: Ledger, operator: Engine) -> None:
    first = ledger.record(*[document(f"e{number}") for number in range(7)])
    seen: list[int] = []
    before = None
    with operator.connect() as connection:
        while True:
            page = find(connection, SCHEMA, before=before, limit=3)
            seen += [each.id for each in page.deliveries]
            ledger.record(document(f"later {len(seen)}"))
            if page.before is None:
                break
            before = page.before
        assert seen == first[::-1]
        every = find_ids(connection, SCHEMA, limit=100)
        assert [each.id for each in find_all(connection, SCHEMA, Filter())] == every
        assert [each.id for each in find_all(connection, SCHEMA, Filter(), limit=4)] == every[:4]
        assert find_ids(connection, SCHEMA, before=first[2], limit=100) == first[1::-1]


@pytest.mark.parametrize("escaped", [False, True])
def test_text_is_found_however_the_sender_wrote_it(ledger: Ledger, operator: Engine, escaped: bool) -> None:
    ledger.record(json.dumps(document("e1", note='say "grüezi"'), ensure_ascii=escaped).encode(), document("e2"))
    assert events(operator, Filter(text="grüezi")) == ["e1"]
    assert events(operator, Filter(text='say "grüezi"')) == ["e1"]


def test_what_a_handler_says_of_a_signature_is_not_shown(ledger: Ledger, operator: Engine) -> None:
    [id] = ledger.record(document("e1"))
    signature = ledger.value(
        "SELECT pair ->> 1 FROM hookledger.payloads, jsonb_array_elements(headers) AS pair WHERE pair ->> 0 = 'X-Sig'"
    )
    ledger.execute(
        "WITH gone AS (DELETE FROM hookledger.pending) INSERT INTO hookledger.dead_letters"
        " (delivery_id, attempts, reason, error, fingerprint) VALUES (:id, 1, 'failed', :error, 'f')",
        id=id,
        error=f"bad {signature} given",
    )
    with operator.connect() as connection:
        [found] = find(connection, SCHEMA).deliveries
    assert len(signature) > 30
    assert found.error == f"bad [masked, {len(signature)} characters] given"
