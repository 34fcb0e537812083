"""A body that something before the receiver has read, in Flask (B063)."""

from __future__ import annotations

import pytest

from tests.adapters.kinds import WSGI, over
from tests.adapters.served import Served, event_id
from tests.adapters.wire import Answer

FORM = b"payload=%7B%22id%22%3A%22s4%22%7D"

whole_and_chunked = pytest.mark.parametrize("in_chunks", [False, True], ids=["whole", "chunked"])


def _post(served: Served, body: bytes, event: str, in_front: str, in_chunks: bool = False) -> Answer:
    headers = [("X-In-Front", in_front), ("Content-Type", "application/x-www-form-urlencoded")]
    if in_chunks:
        return served.post_chunked([body], event, headers=headers)
    return served.post(body, event, headers=headers)


def _names_the_cause(answer: Answer, status: int) -> None:
    assert answer.status == status
    assert b"the request body was consumed before the receiver could read it" in answer.body


@over(WSGI)
@whole_and_chunked
def test_b063_what_flask_has_kept_is_taken(served: Served, in_chunks: bool) -> None:
    event = event_id()
    assert _post(served, FORM, event, "get_data", in_chunks).status == 200
    assert [stored.body for stored in served.stored(event)] == [FORM]


@over(WSGI)
def test_to_ask_for_the_form_of_a_body_that_is_none_does_not_eat_it(served: Served) -> None:
    event = event_id()
    headers = [("X-In-Front", "form"), ("Content-Type", "application/json")]
    assert served.post(b"{}", event, headers=headers).status == 200
    assert [stored.body for stored in served.stored(event)] == [b"{}"]


@over(WSGI)
@pytest.mark.parametrize("in_front", ["get_data_uncached", "form", "stream", "stream_first"])
def test_b063_a_function_that_eats_the_body_is_named(served: Served, in_front: str) -> None:
    event = event_id()
    logged = served.mark()
    _names_the_cause(_post(served, FORM, event, in_front), 500)
    assert "consumed" in logged()
    assert "Traceback" not in logged()
    assert served.stored(event) == []


@over(["flask-gunicorn", "flask-werkzeug"])  # under waitress a chunked body has a length
@pytest.mark.parametrize("in_front", ["get_data_uncached", "form", "stream"])
def test_a_chunked_body_that_was_eaten_is_not_called_wrongly_signed(served: Served, in_front: str) -> None:
    _names_the_cause(_post(served, FORM, event_id(), in_front, in_chunks=True), 400)


@over(["flask-gunicorn", "flask-waitress"])  # werkzeug's own server would wait for more, for ever
@whole_and_chunked
def test_b063_a_wsgi_middleware_that_eats_the_body_is_named(served: Served, in_chunks: bool) -> None:
    _names_the_cause(_post(served, FORM, event_id(), "wsgi_drain", in_chunks), 400)


@over(WSGI)
@pytest.mark.parametrize("in_front", ["form", "get_data_uncached", "stream"])
def test_an_empty_body_cannot_be_eaten(served: Served, in_front: str) -> None:
    event = event_id()
    assert _post(served, b"", event, in_front).status == 200
    assert [stored.body for stored in served.stored(event)] == [b""]
