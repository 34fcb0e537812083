"""What a sender puts on the wire is stored as it is, whatever it is, and ends in a visible state (D2)."""

from __future__ import annotations

import gzip
import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from hookledger.delivery import Delivery
from hookledger.http import Headers
from hookledger.inbox import Inbox
from hookledger.sources import Source, github, stripe
from tests.integration.receive.conftest import MakeReceiving
from tests.ledger import Ledger, Received
from tests.receiving import KEY, Receiving, shop, signed


@pytest.fixture(params=["threads", "loop-async"])
def way(request: pytest.FixtureRequest) -> str:
    """Both engines; who waits for them makes no difference to the bytes."""
    chosen: str = request.param
    return chosen


DEEP = b'{"id":"t5","x":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
LONG_INTEGER = b'{"id":"t6","n":' + b"9" * 5000 + b"}"


def document(source: Source, row: Received) -> Any:
    """What a handler of the delivery sees."""
    delivery = Delivery(
        id=row.id,
        source=row.source,
        event_id=row.event_id,
        event_type=row.event_type,
        resource=row.resource,
        version=None,
        received_at=datetime.now(UTC),
        position=row.position,
        attempt=1,
        body=row.body,
        headers_json=json.dumps(row.headers),
        read_document=source.document,
        is_deleted=source.deleted,
    )
    return delivery.data


@pytest.mark.parametrize(
    ("body", "event_id", "seen"),
    [
        pytest.param(rb'{"id":"t1","note":"a\u0000b"}', "t1", {"id": "t1", "note": "a\x00b"}, id="B013"),
        pytest.param(rb'{"id":"t2","n":"\ud83d"}', "t2", {"id": "t2", "n": "\ud83d"}, id="B014"),
        pytest.param(b'{"id":"t4","v":1e400}', "t4", {"id": "t4", "v": math.inf}, id="1e400"),
        pytest.param(b'{"id":9007199254740993}', "9007199254740993", {"id": 9007199254740993}, id="B016-odd"),
        pytest.param(b'{"id":9007199254740992}', "9007199254740992", {"id": 9007199254740992}, id="B016-even"),
        pytest.param('{"id":"ü☕😀"}'.encode(), "ü☕😀", {"id": "ü☕😀"}, id="UTF-8"),
        pytest.param('{"id":"t7"}'.encode("utf-16"), "t7", {"id": "t7"}, id="UTF-16"),
        pytest.param(b'\xef\xbb\xbf{"id":"t8"}', "t8", {"id": "t8"}, id="BOM"),
        pytest.param(b' {"id" : "t9"}\r\n', "t9", {"id": "t9"}, id="CRLF at the end"),
        pytest.param(b'{"id":"a","id":"t10"}', "t10", {"id": "t10"}, id="repeated key"),
    ],
)
def test_b013_b014_b016_what_json_allows_is_stored_and_handed_over(
    receiving: Receiving, ledger: Ledger, body: bytes, event_id: str, seen: Any
) -> None:
    assert receiving.post(signed(shop(), body)).status == 200
    (row,) = ledger.deliveries()
    assert row.body == body
    assert row.event_id == event_id
    assert document(shop(), row) == seen
    assert ledger.pending() == [event_id]


def test_b015_nan_is_stored_and_handed_over(receiving: Receiving, ledger: Ledger) -> None:
    body = b'{"id":"t3","v":NaN,"w":-Infinity}'
    assert receiving.post(signed(shop(), body)).status == 200
    row = ledger.delivery("t3")
    assert row.body == body
    seen = document(shop(), row)
    assert math.isnan(seen["v"])
    assert seen["w"] == -math.inf
    assert ledger.pending() == ["t3"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(DEEP, "nested too deeply", id="B017"),
        pytest.param(b'{"id":"s10","n":"caf\xe9"}', "byte 0xe9 at 20", id="B010"),
        pytest.param(LONG_INTEGER, "more digits than Python reads", id="5000 digits"),
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b"\x00\x01\x02\xff\xfe", "not", id="binary"),
        pytest.param(b"payload=%7B%7D&x=1&x=2", "not JSON", id="form"),
        pytest.param(gzip.compress(b'{"id":"s12"}', mtime=0), "not", id="gzip"),
        pytest.param(b'{"id":"t1"} trailing', "Extra data", id="trailing"),
    ],
)
def test_b010_b017_what_cannot_be_read_is_stored_and_dead_at_once(
    receiving: Receiving, ledger: Ledger, body: bytes, reason: str
) -> None:
    assert receiving.post(signed(shop(), body)).status == 200
    (row,) = ledger.deliveries()
    assert row.body == body
    (dead,) = ledger.dead()
    assert dead.reason == "unreadable"
    assert reason in dead.error
    assert ledger.pending() == []
    assert receiving.post(signed(shop(), body)).status == 200, "the sender must not be told to try again"
    assert ledger.count("deliveries") == 1


@pytest.mark.parametrize("source", [stripe(secrets=f"whsec_{KEY}"), github(secrets=KEY)], ids=["stripe", "github"])
@pytest.mark.parametrize("body", [DEEP, LONG_INTEGER, b"\xff", b"", b"[]", b'"text"', b"null"])
def test_a_provider_s_unreadable_body_is_stored_and_dead_at_once(
    make_receiving: MakeReceiving, ledger: Ledger, source: Source, body: bytes
) -> None:
    receiving = make_receiving(inbox=Inbox(source))
    assert receiving.post(signed(source, body)).status == 200
    (row,) = ledger.deliveries()
    assert row.body == body
    assert [dead.reason for dead in ledger.dead()] == ["unreadable"]


@pytest.mark.parametrize(
    "body",
    [
        rb'{"id":"\ude00x"}',
        rb'{"id":"a\u0000b"}',
        b'{"id":"' + b"x" * 100_000 + b'"}',
        b'{"id":"' + "ü".encode() * 300 + b'"}',
        rb'{"id":"t","type":"\ud83d\u0000","resource":"\ud83d\u0000"}',
        b'{"id":"t","type":"' + b"y" * 100_000 + b'","resource":"' + b"z" * 100_000 + b'"}',
    ],
    ids=["B014 id", "B013 id", "long id", "long id not in ASCII", "odd type", "long type"],
)
def test_b013_b014_an_event_whose_names_cannot_be_stored_is_one_event(
    receiving: Receiving, ledger: Ledger, body: bytes
) -> None:
    assert [answer.status for answer in receiving.post_all([signed(shop(), body)] * 3)] == [200] * 3
    (row,) = ledger.deliveries()
    assert row.body == body
    assert ledger.pending() == [row.event_id]
    assert ledger.count("redeliveries") == 2


def test_b013_b014_odd_ids_that_differ_are_different_events(receiving: Receiving, ledger: Ledger) -> None:
    bodies = [
        rb'{"id":"a\u0000b"}',
        rb'{"id":"a\ufffdb"}',
        rb'{"id":"a\ud83db"}',
        rb'{"id":"a\ud83eb"}',
        b'{"id":"' + b"x" * 600 + b'"}',
        b'{"id":"' + b"x" * 601 + b'"}',
    ]
    assert [receiving.post(signed(shop(), body)).status for body in bodies] == [200] * 6
    assert [row.body for row in ledger.deliveries()] == bodies
    assert len(set(ledger.pending())) == 6


def test_every_byte_and_every_header_is_kept(receiving: Receiving, ledger: Ledger) -> None:
    body = b'{"id":"t1","note":"' + bytes(range(0x20, 0x7F)).replace(b'"', b"").replace(b"\\", b"") + b'"}\n\r\n\x0b'
    lines = [
        ("X-Repeated", "2"),
        ("x-repeated", "1"),
        ("X-Repeated", "2"),
        ("X-Latin", "caf\xe9 \xff"),
        ("X-Backslash", r"a\u0000b \ud83d \\"),
        ("X-Empty", ""),
        ("A-Quote", "\"'<>%s %(x)s {}"),
    ]
    request = signed(shop(), body, lines)
    assert receiving.post(request).status == 200
    (row,) = ledger.deliveries()
    assert row.body == body
    assert Headers(row.headers) == request.headers


def test_a_header_that_jsonb_cannot_hold_costs_no_event(receiving: Receiving, ledger: Ledger) -> None:
    request = signed(shop(), {"id": "t1"}, [("X-Odd", "a\x00b\ud83dc"), ("X-Pair", "\ud83d\ude00")])
    assert receiving.post(request).status == 200
    assert ledger.delivery("t1").headers[-2] == ("X-Odd", "a\ufffdb\ufffdc")


def test_a_body_of_the_largest_size_is_stored(make_receiving: MakeReceiving, ledger: Ledger) -> None:
    receiving = make_receiving()
    limit = receiving.intake.max_body_bytes
    body = b'{"id":"large","x":"' + b"\xc3\xa9" * ((limit - 21) // 2)
    body += b"y" * (limit - 2 - len(body)) + b'"}'
    assert len(body) == limit
    assert receiving.post(signed(shop(), body)).status == 200
    assert ledger.delivery("large").body == body
    refused = receiving.post(signed(shop(), body + b" "))
    assert refused.status == 413
    assert ledger.count("payloads") == 1
