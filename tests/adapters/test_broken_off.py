"""A sender that breaks off, or sends nonsense, leaves no row and rings no alarm (B066)."""

from __future__ import annotations

import pytest

from tests.adapters.kinds import but, over
from tests.adapters.served import Served, event_id
from tests.adapters.wire import chunked, head, signed
from tests.processes import wait_until

BODY = bytes(range(100))
BUFFERS_THE_WHOLE = "flask-waitress"


def _is_calm(logged: str) -> None:
    assert "Traceback" not in logged
    assert '" 500' not in logged


@pytest.mark.parametrize("in_chunks", [False, True], ids=["whole", "chunked"])
@pytest.mark.parametrize("sent", [1, 40, 99])
def test_b066_a_body_that_breaks_off_leaves_no_row(served: Served, sent: int, in_chunks: bool) -> None:
    logged = served.mark()
    event = event_id()
    framing = ("Transfer-Encoding", "chunked") if in_chunks else ("Content-Length", str(len(BODY)))
    part = b"%x\r\n%b" % (len(BODY), BODY[:sent]) if in_chunks else BODY[:sent]
    with served.connect() as wire:
        wire.send(head("POST", served.path(), [framing, *signed(BODY, event)]) + part)
        # Once this is answered the server has been through the queue of connections up to ours.
        assert served.request("GET", served.path()).status == 200
    if served.kind != BUFFERS_THE_WHOLE:
        wait_until(lambda: "broke off" in logged())
        assert len([line for line in logged().splitlines() if "broke off" in line]) == 1
    assert served.stored(event) == []
    _is_calm(logged())
    assert served.post(BODY, event).status == 200
    assert [stored.body for stored in served.stored(event)] == [BODY]


@pytest.mark.parametrize(
    "rest",
    [
        b"zz\r\nabc\r\n0\r\n\r\n",
        b"-3\r\nabc\r\n0\r\n\r\n",
        b"3\r\nabcdef\r\n0\r\n\r\n",
        b"3\r\nabc\r\n0\r\nbad trailer\r\n\r\n",
    ],
    ids=["no number", "negative", "longer than said", "trailer"],
)
def test_b066_chunks_that_are_none_are_the_senders_fault(served: Served, rest: bytes) -> None:
    event = event_id()
    logged = served.mark()
    with served.connect() as wire:
        wire.send(head("POST", served.path(), [("Transfer-Encoding", "chunked"), *signed(b"abc", event)]))
        wire.send_while_taken([rest])
        answer = wire.answer_or_none()
    if answer is None or answer.status != 200:
        assert answer is None or 400 <= answer.status < 500
        assert served.stored(event) == []
    else:  # some servers overlook a bad trailer, or what follows a chunk
        assert [stored.body for stored in served.stored(event)] == [b"abc"]
    _is_calm(logged())
    assert served.post(b"{}", event_id()).status == 200


@over(but("flask-werkzeug"))  # it closes after each answer
def test_the_same_connection_is_not_read_into_the_next_request(served: Served) -> None:
    """What follows a body on its connection is a request of its own, and no part of the body."""
    event, other = event_id(), event_id()
    request = head("POST", served.path(), [("Content-Length", "3"), *signed(b"abc", event)]) + b"abc"
    following = head("POST", served.path(), [("Transfer-Encoding", "chunked"), *signed(b"de", other)]) + chunked(
        [b"de"]
    )
    with served.connect() as wire:
        wire.send(request + following)
        assert wire.answer().status == 200
        assert wire.answer().status == 200
    assert [stored.body for stored in served.stored(event)] == [b"abc"]
    assert [stored.body for stored in served.stored(other)] == [b"de"]
