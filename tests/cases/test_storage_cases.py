"""What senders send, from the socket through the ledger to the handler and the terminal (B013 to B020)."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from hookledger import Delivery, Inbox
from hookledger.receive import IntakeSettings
from tests.cases.receiver import CaseReceiver
from tests.cases.sources import sources, x_sig
from tests.ways import WAYS

LIMIT = IntakeSettings().max_body_bytes


def receive(receiver: CaseReceiver, *bodies: bytes, source: str = "shop") -> None:
    """Every body is answered with 2xx and stored as it is."""
    for body in bodies:
        assert receiver.post(source, body, x_sig(body)).status == 200
    assert receiver.bodies() == list(bodies)


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        pytest.param(rb'{"id":"t1","note":"a\u0000b"}', {"id": "t1", "note": "a\x00b"}, id="NUL"),
        pytest.param(rb'{"id":"a\u0000b","type":"\u0000"}', {"id": "a\x00b", "type": "\x00"}, id="NUL in the names"),
        pytest.param(rb'{"\u0000":1,"id":"t1"}', {"\x00": 1, "id": "t1"}, id="NUL in a key"),
    ],
)
def test_b013_a_nul(receiver: CaseReceiver, body: bytes, seen: Any) -> None:
    receive(receiver, body)
    assert receiver.work("shop") == [seen]
    assert receiver.ledger.consistent()
    assert receiver.ledger.pending() == []


@pytest.mark.parametrize(
    "body",
    [
        rb'{"id":"t2","n":"\ud83d"}',
        rb'{"id":"\ude00x","type":"\ud83d"}',
        rb'{"id":"\ud83d\ud83d\ude00","resource":"\udfff"}',
    ],
)
def test_b014_half_a_surrogate_pair(receiver: CaseReceiver, body: bytes) -> None:
    receive(receiver, body)
    assert receiver.work("shop") == [json.loads(body)]
    assert receiver.ledger.consistent()
    assert receiver.ledger.pending() == []


def test_b015_what_only_python_takes_for_json(receiver: CaseReceiver) -> None:
    receive(receiver, b'{"id":"t3","v":NaN,"w":-Infinity}')
    (seen,) = receiver.work("shop")
    assert math.isnan(seen["v"])
    assert seen["w"] == -math.inf
    assert receiver.ledger.consistent()
    assert receiver.ledger.pending() == []


@pytest.mark.parametrize("version", ["NaN", "Infinity", "-Infinity", "1e400", "[NaN]"])
def test_b015_what_is_no_version_is_a_failure_and_not_repeated_for_ever(receiver: CaseReceiver, version: str) -> None:
    receive(receiver, f'{{"id":"t3","resource":"r1","version":{version}}}'.encode())
    inbox = Inbox(*sources())

    @inbox.snapshot("shop", name="keep")
    def keep(delivery: Delivery, tx: Any) -> dict[str, int]:
        return {"kept": 1}

    WAYS[0].work(receiver.url, inbox)
    (row,) = receiver.ledger.run("SELECT attempts, last_error FROM pending")
    assert row.attempts == 1
    assert "version" in row.last_error


def test_b016_integers_that_a_float_does_not_hold(receiver: CaseReceiver) -> None:
    odd, even = 9007199254740993, 9007199254740992
    receive(receiver, b'{"id":%d}' % odd, b'{"id":%d}' % even, b'{"id":%d,"resource":%d}' % (2**80 + 1, 2**80 + 1))
    assert receiver.ledger.event_ids() == [str(odd), str(even), str(2**80 + 1)]
    assert receiver.ledger.deliveries()[2].resource == str(2**80 + 1)
    assert [seen["id"] for seen in receiver.work("shop")] == [odd, even, 2**80 + 1]


DEEP = b"[" * 20_000 + b"]" * 20_000


@pytest.mark.parametrize("source", ["shop", "many", "form"])
@pytest.mark.parametrize(
    "body",
    [
        b'{"id":"t5","x":' + DEEP + b"}",
        DEEP,
        b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        b"[" * 1_000_000,
        b"payload=" + DEEP,
        b'[{"id":"t5"},' + DEEP + b"]",
    ],
    ids=["in an object", "alone", "objects", "without an end", "in a form", "in a batch"],
)
def test_b017_deep_nesting(receiver: CaseReceiver, source: str, body: bytes) -> None:
    logged = receiver.served.mark()
    headers = x_sig(body) if source != "many" else [("X-Sig", x_sig(body)[0][1].removeprefix("v1="))]
    assert receiver.post(source, body, headers).status == 200
    assert {row.body for row in receiver.ledger.deliveries()} == {body}
    assert {dead.reason for dead in receiver.ledger.dead()} <= {"unreadable"}
    receiver.work(source)
    assert receiver.ledger.consistent()
    assert "Traceback" not in logged()


@pytest.mark.parametrize("in_chunks", [False, True], ids=["whole", "chunked"])
def test_b018_large_bodies(receiver: CaseReceiver, in_chunks: bool) -> None:
    for id, size in (("small", 1_100_000), ("large", 5_000_000), ("limit", LIMIT), ("over", LIMIT + 1)):
        receiver.empty()
        logged = receiver.served.mark()
        begin = b'{"id":"%b","x":"' % id.encode()
        body = begin + b"x" * (size - len(begin) - 2) + b'"}'
        pieces = [body[start : start + 1_000_000] for start in range(0, size, 1_000_000)] if in_chunks else []
        answer = receiver.post("shop", body, x_sig(body), pieces=pieces)
        if size <= LIMIT:
            assert answer.status == 200
            assert receiver.bodies() == [body]
            continue
        assert answer.status == 413
        assert receiver.bodies() == []
        (line,) = [line for line in logged().splitlines() if "413:" in line]
        assert "'shop'" in line
        assert str(LIMIT) in line
        assert in_chunks or str(size) in line


def test_b020_json_in_a_form(receiver: CaseReceiver) -> None:
    bodies = [
        b"payload=%7B%22id%22%3A%22t8%22%7D&x=1&x=2",
        b"x=&payload=%7B%22id%22%3A%22t9%22%7D&x=",
        b"payload={%22id%22:%22t%2B10%22}&x=caf%C3%A9",
    ]
    form = [("Content-Type", "application/x-www-form-urlencoded")]
    for body in bodies:
        assert receiver.post("form", body, [*x_sig(body), *form]).status == 200
    assert receiver.bodies() == bodies
    assert receiver.ledger.event_ids() == ["t8", "t9", "t+10"]
    assert sorted(seen["x"] for seen in receiver.work("form")) == [["", ""], ["1", "2"], ["café"]]
