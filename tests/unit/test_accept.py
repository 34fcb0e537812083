"""From a request to what is recorded: nothing but a verified request gets in, and nothing of it gets lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger.delivery import Event
from hookledger.errors import NotUnderstood, NotVerified, UnreadableBody
from hookledger.http import Headers, Request, Response
from hookledger.receive.accept import Accepted, accept
from hookledger.sources import Source
from tests.receiving import many, shop, signed

NOW = 1_700_000_000.0
LARGEST = 1 << 20


def sha256(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def accepted(source: Source, body: Any, headers: Sequence[tuple[str, str]] = ()) -> Accepted:
    result = accept(source, signed(source, body, headers), NOW, LARGEST)
    assert isinstance(result, Accepted)
    return result


def giving(*events: Event) -> Source:
    """A source that reads these events from every request."""
    return replace(shop(), read=lambda request: events)


def raising(error: Exception) -> Source:
    def read(request: Request) -> Sequence[Event]:
        raise error

    return replace(shop(), read=read)


def test_what_a_request_brings_is_recorded() -> None:
    body = json.dumps({"id": "e1", "type": "order.paid", "resource": "r1", "version": "10"}).encode()
    result = accepted(shop(), body, [("X-Other", "1")])
    (event,) = result.events
    assert (event.source, event.event_id, event.event_type, event.resource) == ("shop", "e1", "order.paid", "r1")
    assert (event.version, event.position, event.unreadable) == ("{10}", 0, None)
    assert event.digest == hashlib.sha256(body).digest()
    assert result.body is not None
    assert result.body == body
    assert Headers.from_json(result.headers).get("x-other") == "1"


def test_a_request_that_does_not_verify_is_not_read() -> None:
    def read(request: Request) -> Sequence[Event]:
        raise AssertionError("it must not be looked at")

    request = signed(shop(), {"id": "e1"})
    forged = Request("shop", "POST", request.headers, b'{"id":"e2"}')
    with pytest.raises(NotVerified):
        accept(replace(shop(), read=read, handshake=read), forged, NOW, LARGEST)  # type: ignore[arg-type]


def test_a_handshake_is_answered_only_when_it_verifies() -> None:
    source = replace(shop(), handshake=lambda request: Response(200, b"challenge"))
    assert accept(source, signed(source, {"challenge": 1}), NOW, LARGEST) == Response(200, b"challenge")
    with pytest.raises(NotVerified):
        accept(source, Request("shop", "POST", Headers(), b'{"challenge":1}'), NOW, LARGEST)


@pytest.mark.parametrize("event_id", [None, "", " ", "\n", 0, False, {}, [], "\u3000"])
def test_b026_without_an_id_the_bytes_are_the_key(event_id: Any) -> None:
    (event,) = accepted(giving(Event(event_id, "a")), b"first").events
    assert event.event_id == sha256(b"first")
    (other,) = accepted(giving(Event(event_id, "a")), b"second").events
    assert other.event_id == sha256(b"second")


def test_b026_equal_items_without_an_id_are_different_events() -> None:
    items = [Event(None, "a", content=b"x"), Event(" ", "a", content=b"y"), Event("", "b", content=b"x")]
    first = accepted(giving(*items), b"[]").events
    x, y = f"{sha256(b'x')}/item", f"{sha256(b'y')}/item"
    assert [event.event_id for event in first] == [x, y, f"{x}/2"]
    assert [event.position for event in first] == [0, 1, 2]
    assert [event.event_id for event in accepted(giving(*items), b"[]").events] == [event.event_id for event in first]


def test_an_item_is_told_by_its_own_bytes_and_a_body_by_all_of_them() -> None:
    events = accepted(giving(Event("e1", "a", content=b"x"), Event("e2", "a")), b"whole").events
    assert [event.digest for event in events] == [hashlib.sha256(each).digest() for each in (b"x", b"whole")]


def test_the_same_event_twice_in_one_body_is_given_on_as_it_is() -> None:
    """The database decides which is the first."""
    result = accepted(many(), [{"id": "e1"}, {"id": "e1"}])
    assert [event.event_id for event in result.events] == ["e1", "e1"]


def test_an_unreadable_body_is_kept_with_its_reason() -> None:
    (event,) = accepted(raising(UnreadableBody("the body is no poem")), b"prose").events
    assert event.unreadable == "the body is no poem"
    assert event.event_id == sha256(b"prose")


@pytest.mark.parametrize(
    "error",
    [
        KeyError("data"),
        RecursionError("too deep"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"),
        ZeroDivisionError(),
    ],
)
def test_a_source_that_trips_over_a_body_keeps_it(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    (event,) = accepted(raising(error), b"odd").events
    assert event.unreadable is not None
    assert type(error).__name__ in event.unreadable
    assert "kept as a dead letter" in caplog.text


def test_a_handshake_that_trips_over_a_body_keeps_it() -> None:
    def handshake(request: Request) -> Response | None:
        raise KeyError("challenge")

    (event,) = accepted(replace(shop(), handshake=handshake), b"odd").events
    assert event.unreadable is not None


@pytest.mark.parametrize("event", [Event("e1", None), Event("e1", "a", content="text"), None])  # type: ignore[arg-type]
def test_a_source_that_gives_nonsense_keeps_the_body(event: Any) -> None:
    (kept,) = accepted(giving(event), b"odd").events
    assert kept.unreadable is not None
    assert kept.event_id == sha256(b"odd")


@pytest.mark.parametrize("error", [NotUnderstood("no"), MemoryError()])
def test_a_source_may_refuse_and_memory_may_be_short(error: Exception) -> None:
    with pytest.raises(type(error)):
        accepted(raising(error), b"x")


def test_a_version_that_cannot_be_compared_is_left_to_the_handler() -> None:
    (event,) = accepted(shop(), {"id": "e1", "version": "v1.2"}).events
    assert event.version is None
    assert event.unreadable is None


@given(st.binary())
def test_every_body_of_the_sender_is_accepted(body: bytes) -> None:
    result = accepted(shop(), body)
    (event,) = result.events
    assert result.body == body
    assert event.event_id.strip()


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_whatever_stands_in_the_fields_is_accepted_and_storable(value: Any) -> None:
    fields = {"id": value, "type": value, "resource": value, "version": value}
    (event,) = accepted(shop(), fields).events
    for made in (event.event_id, event.event_type, event.resource or "", event.version or ""):
        made.encode()
        assert "\x00" not in made
    assert event.event_id.strip()
