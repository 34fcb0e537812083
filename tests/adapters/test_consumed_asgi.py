"""A body that something before the receiver has read, under ASGI (B063)."""

from __future__ import annotations

import pytest

from tests.adapters.applications import FIRST_MESSAGE_SECONDS
from tests.adapters.kinds import ASGI, over
from tests.adapters.served import Served, event_id
from tests.adapters.wire import Answer, head, signed

BODY = b'{"id":"a1"}'
WITH_MIDDLEWARE = ("starlette", "starlette-async", "fastapi")
LONGER = 2 * FIRST_MESSAGE_SECONDS

whole_and_chunked = pytest.mark.parametrize("in_chunks", [False, True], ids=["whole", "chunked"])


def _post(served: Served, body: bytes, event: str, in_front: str, in_chunks: bool = False) -> Answer:
    headers = [("X-In-Front", in_front)]
    if in_chunks:
        return served.post_chunked([body], event, headers=headers)
    return served.post(body, event, headers=headers)


def _names_the_cause(answer: Answer) -> None:
    assert answer.status not in (200, 401)
    assert b"the request body was consumed before the receiver could read it" in answer.body


@over(WITH_MIDDLEWARE)
@pytest.mark.parametrize("in_front", ["read_before", "read_before_and_after", "wrap"])
@whole_and_chunked
def test_b063_a_middleware_that_hands_the_body_on_is_no_trouble(served: Served, in_front: str, in_chunks: bool) -> None:
    event = event_id()
    assert _post(served, BODY, event, in_front, in_chunks).status == 200
    assert [stored.body for stored in served.stored(event)] == [BODY]


@over(WITH_MIDDLEWARE)
@pytest.mark.parametrize(
    ("in_front", "status_whole", "status_chunked"),
    [
        ("drain", 500, 500),
        # A drained body and a slow sender look alike through a `receive` that is not the server's own.
        ("drain_wrapped", 408, 408),
        ("drain_closed", 400, 400),
        # What is left of a chunked body that was read is an empty one.
        ("stream_before", 500, 400),
    ],
)
@whole_and_chunked
def test_b063_a_middleware_that_eats_the_body_is_named(
    served: Served, in_front: str, status_whole: int, status_chunked: int, in_chunks: bool
) -> None:
    event = event_id()
    logged = served.mark()
    answer = _post(served, BODY, event, in_front, in_chunks)
    _names_the_cause(answer)
    assert answer.status == (status_chunked if in_chunks else status_whole)
    assert "consumed" in logged()
    assert "Traceback" not in logged()
    assert served.stored(event) == []


@over(WITH_MIDDLEWARE)
def test_b063_a_middleware_that_eats_a_part_of_the_body_is_named(served: Served) -> None:
    body = bytes(200_000)
    lines = [("Content-Length", str(len(body))), ("X-In-Front", "drain_first"), *signed(body, event_id())]
    with served.connect() as wire:
        wire.send(head("POST", served.path(), lines) + body[:10])
        # The first part is with the middleware before the rest follows.
        assert wire.silent_for(0.3)
        wire.send(body[10:])
        answer = wire.answer()
    _names_the_cause(answer)
    assert answer.status == 500


@over(WITH_MIDDLEWARE)
@pytest.mark.parametrize("in_front", ["drain", "drain_wrapped", "drain_closed", "stream_before"])
def test_an_empty_body_cannot_be_eaten(served: Served, in_front: str) -> None:
    event = event_id()
    assert _post(served, b"", event, in_front).status == 200
    assert [stored.body for stored in served.stored(event)] == [b""]


@over(ASGI)
def test_a_slow_sender_is_not_taken_for_an_eater(served: Served) -> None:
    event = event_id()
    with served.connect() as wire:
        wire.send(head("POST", served.path(), [("Content-Length", str(len(BODY))), *signed(BODY, event)]))
        assert wire.silent_for(LONGER)
        wire.send(BODY[:3])
        assert wire.silent_for(LONGER)
        wire.send(BODY[3:])
        assert wire.answer().status == 200
    assert [stored.body for stored in served.stored(event)] == [BODY]


@over(WITH_MIDDLEWARE)
def test_once_the_body_has_begun_a_middleware_gives_a_sender_as_much_time(served: Served) -> None:
    event = event_id()
    lines = [("Content-Length", str(len(BODY))), ("X-In-Front", "wrap"), *signed(BODY, event)]
    with served.connect() as wire:
        wire.send(head("POST", served.path(), lines) + BODY[:3])
        assert wire.silent_for(LONGER)
        wire.send(BODY[3:])
        assert wire.answer().status == 200
    assert [stored.body for stored in served.stored(event)] == [BODY]
