"""Reading bodies: every body is a document or an UnreadableBody whose reason names the cause."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from hookledger.errors import UncomparableVersion, UnreadableBody
from hookledger.sources.reading import in_document, in_form, moment, read_form, read_json
from hookledger.version import read_version


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "is empty"),
        (b" \r\n", "is empty"),
        (b"{", "not JSON"),
        (b'{"id":1} x', "not JSON: Extra data at line 1 column 10"),
        (b'{"id":"s10","n":"caf\xe9"}', "byte 0xe9 at 20"),
        (b"\xff\xfe\xff", "not text in UTF-16"),
        (b'{"id":"t5","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"n":' + b"9" * 5000 + b"}", "more digits"),
        (b"\x00\x01\x02", ""),
        (b"id=1&type=a", "not JSON"),
    ],
)
def test_b010_b017_the_reason_names_why_a_body_is_no_json(body: bytes, reason: str) -> None:
    with pytest.raises(UnreadableBody) as caught:
        read_json(body)
    assert reason in str(caught.value)


def test_json_is_taken_as_python_reads_it() -> None:
    assert read_json(b'\xef\xbb\xbf{"id":"a"}') == {"id": "a"}
    assert read_json(b'{"id":"t2","n":"\\ud83d"}') == {"id": "t2", "n": "\ud83d"}
    assert read_json(b'{"id":"t1","note":"a\\u0000b"}')["note"] == "a\x00b"
    document = read_json(b'{"v":NaN,"w":-Infinity,"x":1e400}')
    assert math.isnan(document["v"])
    assert document["w"] == -math.inf
    assert document["x"] == math.inf


def test_b016_integers_are_exact() -> None:
    assert read_json(b"[9007199254740993, 9007199254740992]") == [9007199254740993, 9007199254740992]


def test_b020_a_form_keeps_every_value_and_the_blank_ones() -> None:
    fields = read_form(b"payload=%7B%22id%22%3A%22t8%22%7D&x=1&x=2&blank=&plus=a+b")
    assert fields == {"payload": ['{"id":"t8"}'], "x": ["1", "2"], "blank": [""], "plus": ["a b"]}
    assert in_form(fields, ("payload", "id")) == "t8"
    assert in_form(fields, ("x",)) == "1"
    assert in_form(fields, ("x", "id")) is None
    assert in_form(fields, ("blank", "id")) is None
    assert in_form(fields, ("missing",)) is None


def test_a_form_of_any_bytes_is_read_and_distinct_bytes_stay_distinct() -> None:
    assert read_form(b"a=%E9") != read_form(b"a=%EA")
    assert read_form(b"a=\xe9") != read_form(b"a=\xea")
    assert read_form("a=é".encode()) == read_form(b"a=%C3%A9") == {"a": ["é"]}
    assert read_form(b"") == {}
    with pytest.raises(UnreadableBody, match="more than 10000 fields"):
        read_form(b"a&" * 20_000)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("data.object.id", "x"),
        ("items.1.id", 2),
        ("items.2.id", None),
        ("items.-1.id", None),
        ("items.²", None),
        ("items." + "9" * 5000, None),
        ("items.id", None),
        ("data.object.id.deeper", None),
        ("missing.id", None),
        ("map.0", "zero"),
    ],
)
def test_a_path_leads_to_a_value_or_to_nothing(path: str, found: Any) -> None:
    document = {"data": {"object": {"id": "x"}}, "items": [{"id": 1}, {"id": 2}], "map": {"0": "zero"}}
    assert in_document(document, tuple(path.split("."))) == found


def test_a_number_since_1970_becomes_a_time() -> None:
    assert moment(1_700_000_000) == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert moment("1700000000") == moment(1_700_000_000)
    assert moment(1_700_000_000_123, "milliseconds") == moment(1_700_000_000.123)
    assert read_version(moment(1_700_000_000)) == read_version("2023-11-14T22:13:20Z")
    assert moment("2023-11-14T22:13:20Z") == "2023-11-14T22:13:20Z"
    assert moment(None) is None


@pytest.mark.parametrize("value", [10**15, 10**4000, -(10**15), math.inf, math.nan, 1e300, True, {}, "soon"])
def test_a_number_beyond_any_calendar_is_refused_as_a_version(value: Any) -> None:
    with pytest.raises(UncomparableVersion):
        read_version(moment(value))
