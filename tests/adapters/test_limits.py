"""The size of a body is bounded, and so is the memory that an endless one costs (B018)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hookledger.receive import IntakeSettings
from tests.adapters.conftest import Serve
from tests.adapters.kinds import ASGI, WSGI, but, over
from tests.adapters.served import Served, event_id
from tests.adapters.wire import chunked, head, signed

MEBIBYTE = 1024 * 1024
LIMIT = IntakeSettings().max_body_bytes


def test_the_limit_is_25_mebibytes_by_default(served: Served) -> None:
    assert LIMIT == 25 * MEBIBYTE
    event = event_id()
    body = bytes(LIMIT)
    assert served.post(body, event).status == 200
    assert [stored.body == body for stored in served.stored(event)] == [True]


@pytest.mark.parametrize("in_chunks", [False, True], ids=["whole", "chunked"])
def test_b018_one_byte_more_is_refused(served: Served, in_chunks: bool) -> None:
    event = event_id()
    body = bytes(LIMIT + 1)
    pieces = [body[start : start + MEBIBYTE] for start in range(0, len(body), MEBIBYTE)]
    answer = served.post_chunked(pieces, event) if in_chunks else served.post(body, event)
    assert answer.status == 413
    assert served.stored(event) == []
    # The server goes on.
    assert served.post(b"{}", event).status == 200


@over(but("flask-waitress"))  # waitress calls an application only when it has the whole body
def test_a_length_over_the_limit_is_refused_before_anything_is_sent(served: Served) -> None:
    for length in (LIMIT + 1, 10**17):
        with served.connect() as wire:
            wire.send(head("POST", served.path(), [("Content-Length", str(length)), *signed(b"", event_id())]))
            answer = wire.answer()
            assert answer.status == 413
            assert b"limit" in answer.body


@over(but("flask-waitress"))
def test_an_unknown_source_is_refused_before_anything_is_sent(served: Served) -> None:
    with served.connect() as wire:
        wire.send(head("POST", served.path("unknown"), [("Content-Length", "1000"), *signed(b"", event_id())]))
        assert wire.answer().status == 404


def _endless(total: int) -> Iterator[bytes]:
    piece = bytes(MEBIBYTE)
    for _ in range(total // MEBIBYTE):
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def test_b018_an_endless_body_costs_no_memory(served: Served) -> None:
    body = bytes(LIMIT)
    assert served.post_chunked([body], event_id()).status == 200
    before = served.peak_memory()
    event = event_id()
    with served.connect() as wire:
        wire.send(head("POST", served.path(), [("Transfer-Encoding", "chunked"), *signed(b"", event)]))
        wire.send_while_taken(_endless(300 * MEBIBYTE))
        answer = wire.answer_or_none()
    assert answer is None or answer.status == 413
    assert served.stored(event) == []
    # One body at the limit has set the mark already; twelve times as much must not move it far.
    assert served.peak_memory() - before < 2 * LIMIT
    assert served.post(b"{}", event).status == 200


def test_a_large_body_for_nobody_is_refused(served: Served) -> None:
    """The answer reaches a client that sends all before it reads."""
    body = bytes(5 * MEBIBYTE)
    answer = served.post(body, event_id(), path=served.path("unknown"))
    assert answer.status == 404


@pytest.mark.parametrize("kind", WSGI)
def test_the_limit_of_the_flask_application_does_not_hold(serve: Serve, kind: str) -> None:
    served = serve(kind, max_content_length=10)
    body = bytes(1000)
    for post in (lambda event: served.post(body, event), lambda event: served.post_chunked([body], event)):
        event = event_id()
        assert post(event).status == 200
        assert [stored.body for stored in served.stored(event)] == [body]


@pytest.mark.parametrize("kind", ASGI)
def test_a_body_that_does_not_end_in_time_is_refused(serve: Serve, kind: str) -> None:
    served = serve(kind, body_timeout=0.3)
    event = event_id()
    with served.connect() as wire:
        wire.send(head("POST", served.path(), [("Content-Length", "100"), *signed(b"", event)]) + b"half of it")
        answer = wire.answer()
    assert (answer.status, answer.header("connection")) == (408, "close")
    assert b"10 bytes" in answer.body
    with served.connect() as wire:
        wire.send(head("POST", served.path(), [("Content-Length", "100"), *signed(b"", event)]))
        assert wire.answer().status == 408
    with served.connect() as wire:
        wire.send(head("POST", served.path(), [("Transfer-Encoding", "chunked"), *signed(b"", event)]))
        wire.send(chunked([b"half of it"])[:-5])
        assert wire.answer().status == 408
    assert served.stored(event) == []
    assert served.post(b"{}", event).status == 200
