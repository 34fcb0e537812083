"""A body that something before the receiver has read, and CSRF protection, in Flask (B063, B068)."""

from __future__ import annotations

import pytest

from tests.adapters.conftest import Serve
from tests.adapters.kinds import WSGI
from tests.adapters.served import Served, event_id

FORM = b"payload=%7B%22id%22%3A%22s4%22%7D"
FORM_HEADERS = [("Content-Type", "application/x-www-form-urlencoded")]


@pytest.mark.parametrize("in_chunks", [False, True], ids=["whole", "chunked"])
@pytest.mark.parametrize("kind", WSGI)
def test_what_flask_has_kept_is_taken(serve: Serve, kind: str, in_chunks: bool) -> None:
    served = serve(kind, in_front="get_data")
    event = event_id()
    post = served.post_chunked([FORM], event, headers=FORM_HEADERS) if in_chunks else served.post(FORM, event, headers=FORM_HEADERS)
    assert post.status == 200
    assert [stored.body for stored in served.stored(event)] == [FORM]


@pytest.mark.parametrize("kind", WSGI)
def test_a_form_that_is_none_is_not_eaten(serve: Serve, kind: str) -> None:
    served = serve(kind, in_front="form")
    event = event_id()
    assert served.post(b"{}", event, headers=[("Content-Type", "application/json")]).status == 200
    assert [stored.body for stored in served.stored(event)] == [b"{}"]


@pytest.mark.parametrize("in_front", ["get_data_uncached", "form", "stream", "stream_first"])
@pytest.mark.parametrize("kind", WSGI)
def test_a_function_that_eats_the_body_is_named(serve: Serve, kind: str, in_front: str) -> None:
    served = serve(kind, in_front=in_front)
    event = event_id()
    answer = served.post(FORM, event, headers=FORM_HEADERS)
    assert answer.status == 500
    assert b"the request body was consumed before the receiver could read it" in answer.body
    assert "consumed" in served.child.output
    assert "Traceback" not in served.child.output
    assert served.stored(event) == []


@pytest.mark.parametrize("in_front", ["get_data_uncached", "form", "stream"])
@pytest.mark.parametrize("kind", ["flask-gunicorn", "flask-werkzeug"])
def test_a_chunked_body_that_was_eaten_is_not_called_wrongly_signed(serve: Serve, kind: str, in_front: str) -> None:
    served = serve(kind, in_front=in_front)
    answer = served.post_chunked([FORM], event_id(), headers=FORM_HEADERS)
    assert answer.status == 400
    assert b"the request body was consumed before the receiver could read it" in answer.body


@pytest.mark.parametrize("in_chunks", [False, True], ids=["whole", "chunked"])
@pytest.mark.parametrize("kind", ["flask-gunicorn", "flask-waitress"])
def test_a_wsgi_middleware_that_eats_the_body_is_named(serve: Serve, kind: str, in_chunks: bool) -> None:
    served = serve(kind, in_front="wsgi_drain")
    answer = served.post_chunked([FORM], event_id()) if in_chunks else served.post(FORM, event_id())
    assert answer.status == 400
    assert b"the request body was consumed before the receiver could read it" in answer.body


@pytest.mark.parametrize("in_front", ["form", "get_data_uncached", "stream"])
def test_an_empty_body_cannot_be_eaten(serve: Serve, in_front: str) -> None:
    served = serve("flask-gunicorn", in_front=in_front)
    event = event_id()
    assert served.post(b"", event, headers=FORM_HEADERS).status == 200
    assert [stored.body for stored in served.stored(event)] == [b""]


@pytest.mark.parametrize("csrf", ["before", "after", "nested"])
def test_csrf_protection_does_not_hold_for_the_receiver(serve: Serve, csrf: str) -> None:
    served = serve("flask-waitress", csrf=csrf)
    for headers in ([], FORM_HEADERS):
        event = event_id()
        assert served.post(FORM, event, headers=headers).status == 200
        assert [stored.body for stored in served.stored(event)] == [FORM]
    _still_protects(served)


def _still_protects(served: Served) -> None:
    answer = served.request("POST", "/elsewhere", [("Content-Length", "0")])
    assert answer.status == 400
    assert b"CSRF" in answer.body
