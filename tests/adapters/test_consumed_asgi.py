"""A body that something before the receiver has read, under ASGI (B063)."""

from __future__ import annotations

import pytest

from tests.adapters.conftest import Serve
from tests.adapters.kinds import ASGI
from tests.adapters.served import event_id
from tests.adapters.wire import Answer, head, signed

BODY = b'{"id":"a1"}'
UVICORN_KINDS = ("starlette", "starlette-async")


def _names_the_cause(answer: Answer) -> None:
    assert answer.status not in (200, 401)
    assert b"the request body was consumed before the receiver could read it" in answer.body


@pytest.mark.parametrize("in_chunks", [False, True], ids=["whole", "chunked"])
@pytest.mark.parametrize("in_front", ["read_before", "read_after", "wrap"])
@pytest.mark.parametrize("kind", UVICORN_KINDS)
def test_a_middleware_that_hands_the_body_on_is_no_trouble(
    serve: Serve, kind: str, in_front: str, in_chunks: bool
) -> None:
    served = serve(kind, in_front=in_front)
    event = event_id()
    answer = served.post_chunked([BODY], event) if in_chunks else served.post(BODY, event)
    assert answer.status == 200
    assert [stored.body for stored in served.stored(event)] == [BODY]


@pytest.mark.parametrize("in_chunks", [False, True], ids=["whole", "chunked"])
@pytest.mark.parametrize(
    ("in_front", "status"),
    [("drain", {500}), ("drain_wrapped", {408}), ("drain_closed", {400, 500}), ("stream_before", {400, 500})],
)
@pytest.mark.parametrize("kind", UVICORN_KINDS)
def test_a_middleware_that_eats_the_body_is_named(
    serve: Serve, kind: str, in_front: str, status: set[int], in_chunks: bool
) -> None:
    # A drained body and a slow sender look alike through a wrapped `receive`: only time tells them apart.
    served = serve(kind, in_front=in_front, first_message=0.2)
    event = event_id()
    answer = served.post_chunked([BODY], event) if in_chunks else served.post(BODY, event)
    _names_the_cause(answer)
    assert answer.status in status
    assert "consumed" in served.child.output
    assert "Traceback" not in served.child.output
    assert served.stored(event) == []


@pytest.mark.parametrize("kind", UVICORN_KINDS)
def test_a_middleware_that_eats_a_part_of_the_body_is_named(serve: Serve, kind: str) -> None:
    served = serve(kind, in_front="drain_first")
    body = bytes(200_000)
    with served.connect() as wire:
        wire.send(head("POST", served.path(), [("Content-Length", str(len(body))), *signed(body, event_id())]) + body[:10])
        # The first part is on its way to the middleware before the rest follows.
        assert wire.silent_for(0.3)
        wire.send(body[10:])
        answer = wire.answer()
    _names_the_cause(answer)
    assert answer.status == 500


@pytest.mark.parametrize("in_front", ["drain", "drain_wrapped", "stream_before"])
def test_an_empty_body_cannot_be_eaten(serve: Serve, in_front: str) -> None:
    served = serve("starlette", in_front=in_front)
    event = event_id()
    assert served.post(b"", event).status == 200
    assert [stored.body for stored in served.stored(event)] == [b""]


@pytest.mark.parametrize("kind", ASGI)
def test_a_slow_sender_is_not_taken_for_an_eater(serve: Serve, kind: str) -> None:
    served = serve(kind, first_message=0.05)
    event = event_id()
    with served.connect() as wire:
        wire.send(head("POST", served.path(), [("Content-Length", str(len(BODY))), *signed(BODY, event)]))
        assert wire.silent_for(0.5)
        wire.send(BODY[:3])
        assert wire.silent_for(0.5)
        wire.send(BODY[3:])
        assert wire.answer().status == 200
    assert [stored.body for stored in served.stored(event)] == [BODY]


def test_a_sender_that_is_slow_between_pieces_is_not_taken_for_an_eater(serve: Serve) -> None:
    served = serve("starlette", in_front="wrap", first_message=0.5)
    event = event_id()
    with served.connect() as wire:
        wire.send(head("POST", served.path(), [("Content-Length", str(len(BODY))), *signed(BODY, event)]) + BODY[:3])
        assert wire.silent_for(1.0)
        wire.send(BODY[3:])
        assert wire.answer().status == 200
    assert [stored.body for stored in served.stored(event)] == [BODY]
