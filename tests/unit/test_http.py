"""Headers keep order, repeats and every byte; and tell no secret."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from hookledger.http import Headers, Request, Response

wire = st.lists(st.tuples(st.binary(), st.binary()))
pairs = st.lists(st.tuples(st.text(), st.text()))


@given(wire)
def test_headers_from_the_wire_keep_every_byte(lines: list[tuple[bytes, bytes]]) -> None:
    headers = Headers.from_wire(lines)
    assert [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers] == lines
    assert len(headers) == len(lines)


@given(st.lists(st.tuples(st.text(), st.text())))
@example([("X-Note", r"a\u0000b")])
@example([("X-Note", r"\ud83d")])
@example([("X-Note", r"\\u0000")])
@example([("X-Note", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"))])
def test_what_jsonb_can_hold_survives_it(lines: list[tuple[str, str]]) -> None:
    kept = [(name.replace("\x00", "\ufffd"), value.replace("\x00", "\ufffd")) for name, value in lines]
    assert list(Headers.from_json(Headers(lines).to_json())) == kept


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=())), st.text(st.sampled_from("\\u0d\x00\ud83d")))))
def test_json_of_headers_has_nothing_that_jsonb_refuses(lines: list[tuple[str, str]]) -> None:
    for name, value in json.loads(Headers(lines).to_json()):
        for each in (name, value):
            assert "\x00" not in each
            each.encode()


def test_names_are_found_whatever_their_case() -> None:
    headers = Headers([("X-One", "1"), ("Other", "-"), ("x-one", "2"), ("X-ONE", "")])
    assert headers.all("x-One") == ["1", "2", ""]
    assert headers.get("X-one") == "1"
    assert headers.get("missing") is None
    assert headers.get("missing", "-") == "-"
    assert "x-ONE" in headers
    assert "missing" not in headers


def test_headers_are_equal_in_the_same_order_only() -> None:
    one, two = ("A", "1"), ("B", "2")
    assert Headers([one, two]) == Headers([one, two])
    assert hash(Headers([one, two])) == hash(Headers([one, two]))
    assert Headers([one, two]) != Headers([two, one])


def test_secrets_are_not_in_the_repr() -> None:
    request = Request("shop", "POST", Headers([("Authorization", "Bearer hunter2")]), b"body of hunter2")
    assert "hunter2" not in repr(request)
    # Some providers have their token there.
    assert "hunter2" not in repr(Request("shop", "POST", Headers(), b"", "https://x/?token=hunter2", "token=hunter2"))
    assert "Authorization" in repr(request)


def test_a_json_answer() -> None:
    response = Response.json(200, {"challenge": "ü"})
    assert json.loads(response.body) == {"challenge": "ü"}
    assert dict(response.headers)["content-type"] == "application/json"
