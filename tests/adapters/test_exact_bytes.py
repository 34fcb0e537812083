"""What was sent is what is stored, byte for byte, and what is verified (D2, D3)."""

from __future__ import annotations

import pytest

from tests.adapters.hub import signature
from tests.adapters.kinds import but, over
from tests.adapters.served import Served, event_id
from tests.adapters.wire import chunked, head, signed

BODIES = {
    "B001 three-byte character": '{"id":"s1","tier":"☕ club"}'.encode(),
    "B001 four-byte character": '{"id":"s1","tier":"😀"}'.encode(),
    "B001 two-byte character": '{"id":"s1","tier":"ça"}'.encode(),
    "B002 CR LF at the end": b'[{"id":"s2"}]\r\n',
    "B003 odd spacing": b'{"b":1.0,  "a":2}',
    "B010 not UTF-8": b'{"id":"s10","n":"caf\xe9"}',
    "B013 NUL as an escape": b'{"id":"t1","note":"a\\u0000b"}',
    "NUL as a byte": b'{"id":"\x00"}',
    "every byte": bytes(range(256)) * 3,
    "line ends only": b"\r\n\n\r",
    "nothing": b"",
    "B018 1.1 MB": bytes(range(250)) * 4400,
    "B018 5 MB": bytes(range(250)) * 20_000,
}
FORM = b"payload=%7B%22id%22%3A%22s4%22%7D"


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_is_stored_as_it_was_sent(served: Served, body: bytes) -> None:
    event = event_id()
    assert served.post(body, event).status == 200
    assert [stored.body for stored in served.stored(event)] == [body]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_b065_a_chunked_body_is_stored_as_it_was_sent(served: Served, body: bytes) -> None:
    event = event_id()
    pieces = [body[start : start + 100_000] for start in range(0, len(body), 100_000)]
    assert served.post_chunked(pieces, event).status == 200
    assert [stored.body for stored in served.stored(event)] == [body]


def test_b065_a_chunked_body_comes_together_from_separate_packets(served: Served) -> None:
    event = event_id()
    pieces = [b'{"id":', b'"a3"}']
    with served.connect() as wire:
        wire.send(head("POST", served.path(), [("Transfer-Encoding", "chunked"), *signed(b"".join(pieces), event)]))
        for piece in pieces:
            assert wire.silent_for(0.05)
            wire.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        wire.send(b"0\r\n\r\n")
        assert wire.answer().status == 200
    assert [stored.body for stored in served.stored(event)] == [b'{"id":"a3"}']


def test_a_body_in_thousands_of_tiny_chunks(served: Served) -> None:
    event = event_id()
    body = bytes(range(256)) * 20
    assert served.post_chunked([bytes([byte]) for byte in body], event).status == 200
    assert [stored.body for stored in served.stored(event)] == [body]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/x-www-form-urlencoded", FORM),
        ("application/x-www-form-urlencoded; charset=iso-8859-1", b"x=1&x=2&y=%E9+%00&&="),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n'),
        ("multipart/form-data", b"no boundary"),
        ("application/json; charset=utf-16", '{"id":"s4"}'.encode("utf-16")),
        ("", b"no type"),
    ],
)
@pytest.mark.parametrize("in_chunks", [False, True], ids=["whole", "chunked"])
def test_b004_b020_the_content_type_changes_nothing(
    served: Served, content_type: str, body: bytes, in_chunks: bool
) -> None:
    event = event_id()
    headers = [("Content-Type", content_type)]
    if in_chunks:
        answer = served.post_chunked([body], event, headers=headers)
    else:
        answer = served.post(body, event, headers=headers)
    assert answer.status == 200
    assert [stored.body for stored in served.stored(event)] == [body]


@pytest.mark.parametrize(
    ("sent", "signed_for"),
    [
        (b'[{"id":"s2"}]', b'[{"id":"s2"}]\r\n'),
        (b'[{"id":"s2"}]\r\n', b'[{"id":"s2"}]'),
        (b'{"a": 2, "b": 1.0}', b'{"b":1.0,  "a":2}'),
        (b"", b"{}"),
        (b"{}", b""),
    ],
)
def test_b002_b003_a_body_that_was_not_signed_so_is_not_let_in(served: Served, sent: bytes, signed_for: bytes) -> None:
    event = event_id()
    headers = [("X-Hub-Signature-256", signature(signed_for)), ("X-Event-Id", event)]
    answer = served.request("POST", served.path(), [("Content-Length", str(len(sent))), *headers], sent)
    assert (answer.status, answer.body) == (401, b"")
    assert served.stored(event) == []


def test_headers_keep_their_repeats(served: Served) -> None:
    event = event_id()
    assert served.post(b"{}", event, headers=[("X-Tag", "first"), ("X-Tag", "second")]).status == 200
    tags = [value for name, value in served.stored(event)[0].headers if name.lower() == "x-tag"]
    if served.is_wsgi:
        # WSGI knows a header once; its server has joined the values, with or without a space.
        assert [tag.replace(", ", ",") for tag in tags] == ["first,second"]
    else:
        assert tags == ["first", "second"]


def test_headers_that_are_not_ascii_are_kept(served: Served) -> None:
    event = event_id()
    assert served.post(b"{}", event, headers=[("X-Name", "caf\xe9 \xd1\x81")]).status == 200
    assert ("x-name", "caf\xe9 \xd1\x81") in [(name.lower(), value) for name, value in served.stored(event)[0].headers]


@pytest.mark.parametrize("value", ["sha256=\xe9", "\xd1\x81", "sha256=", "", "sha256=" + "0" * 5000])
def test_b009_a_signature_of_any_bytes_is_just_wrong(served: Served, value: str) -> None:
    lines = [("Content-Length", "2"), ("X-Hub-Signature-256", value), ("X-Event-Id", event_id())]
    assert served.request("POST", served.path(), lines, b"{}").status == 401


@over(but("flask-werkzeug"))  # it closes after each answer
def test_requests_follow_each_other_on_one_connection(served: Served) -> None:
    events = [event_id() for _ in range(5)]
    with served.connect() as wire:
        for event in events:
            body = event.encode()
            wire.send(head("POST", served.path(), [("Content-Length", str(len(body))), *signed(body, event)]) + body)
            assert wire.answer().status == 200
        wire.send(head("POST", served.path(), [("Transfer-Encoding", "chunked"), *signed(b"{}", events[0])]))
        wire.send(chunked([b"{", b"}"]))
        assert wire.answer().status == 200
    assert [[stored.body for stored in served.stored(event)] for event in events] == [
        [event.encode()] for event in events
    ]


def test_a_sender_that_waits_to_be_asked_for_the_body(served: Served) -> None:
    event = event_id()
    with served.connect() as wire:
        lines = [("Content-Length", "4"), ("Expect", "100-continue"), *signed(b"body", event)]
        wire.send(head("POST", served.path(), lines))
        assert not wire.silent_for(5)
        wire.send(b"body")
        assert wire.answer().status == 200
    assert [stored.body for stored in served.stored(event)] == [b"body"]
