"""What stands between a sender and the receiver, and what does not (B067, B069, B070)."""

from __future__ import annotations

import hmac
from base64 import b64encode

import pytest
from sqlalchemy import text

from tests.adapters.conftest import Serve
from tests.adapters.served import event_id
from tests.adapters.wire import Answer
from tests.cases.receiver import CaseReceiver
from tests.cases.sources import KEY, PUBLIC_URL
from tests.processes import wait_until

GATE = 4712
FORM = ("Content-Type", "application/x-www-form-urlencoded")


def call(receiver: CaseReceiver, query: str, url: str, *headers: tuple[str, str]) -> Answer:
    """A request as Twilio sends it to the URL, arriving with the query."""
    signature = b64encode(hmac.digest(KEY, f"{url}SidSM1".encode("latin-1"), "sha1")).decode()
    lines = [("Content-Length", "7"), ("X-Twilio-Signature", signature), FORM, *headers]
    return receiver.served.request("POST", receiver.served.path("t") + query, lines, b"Sid=SM1")


QUERIES = ["?x=1%202", "", "?x=1+2", "?x=%C3%A9&y=%2f", "?b=2&a=1&b=1", "?x=a%26b%3Dc"]


@pytest.mark.parametrize("query", QUERIES)
def test_b069_a_signed_url_behind_a_proxy(receiver: CaseReceiver, query: str) -> None:
    assert call(receiver, query, PUBLIC_URL + query).status == 200
    assert receiver.bodies() == [b"Sid=SM1"]
    assert call(receiver, f"{query}{'&' if query else '?'}more=1", PUBLIC_URL + query).status == 401


FORGED = [
    ("X-Forwarded-Host", "evil.test"),
    ("X-Forwarded-Proto", "http"),
    ("X-Forwarded-Port", "8000"),
    ("X-Forwarded-Prefix", "/other"),
    ("Forwarded", "host=evil.test;proto=http"),
    ("X-Original-URL", "/other"),
    ("X-Rewrite-URL", "/other"),
]


def test_b069_no_header_changes_the_url(receiver: CaseReceiver) -> None:
    query = "?x=1%202"
    assert call(receiver, query, PUBLIC_URL + query, *FORGED).status == 200
    assert receiver.bodies() == [b"Sid=SM1"]
    for other in (
        "https://evil.test/hooks/t",
        "http://h.test/hooks/t",
        "https://h.test/other",
        "http://evil.test/other",
    ):
        assert call(receiver, query, other + query, *FORGED).status == 401
    assert receiver.bodies() == [b"Sid=SM1"]


@pytest.mark.parametrize("kind", ["starlette", "starlette-async", "flask-gunicorn"])
def test_b070_a_request_waits_for_no_handler(serve: Serve, kind: str) -> None:
    statement = f"SELECT pg_advisory_xact_lock_shared({GATE}), nextval('runs')"
    served = serve(kind, worker=True, handler_runs=statement)
    with served.engine.begin() as connection:
        connection.execute(text("CREATE SEQUENCE runs"))
    events = [event_id() for _ in range(20)]
    outcomes = text("SELECT event_id FROM hookledger.effects WHERE outcome = 'applied'")
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = :gate")
    with served.engine.connect() as gate:
        gate.execute(text(f"SELECT pg_advisory_xact_lock({GATE})"))
        for event in events:
            assert served.post(b"{}", event).status == 200
        # The handler runs, and goes on when the gate is opened, which all answers have preceded.
        wait_until(lambda: gate.execute(waiting, {"gate": GATE}).scalar())
        assert gate.execute(outcomes).all() == []
        gate.rollback()
    with served.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        wait_until(lambda: len(connection.execute(outcomes).all()) == len(events))
        assert connection.execute(text("SELECT last_value FROM runs")).scalar() == len(events)
    assert served.child.running
    assert "Traceback" not in served.child.output
