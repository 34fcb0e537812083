"""B012: compressed bodies. What is signed is the source's affair; what is inflated is bounded."""

from __future__ import annotations

import contextlib
import gzip
import tracemalloc
import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger.delivery import Delivery
from hookledger.errors import BodyTooLarge, NotUnderstood, NotVerified, SetupError, UnreadableBody, UnsupportedEncoding
from hookledger.http import Headers, Request
from hookledger.sources import Source, github
from hookledger.sources.content_coding import as_read, as_signed, coding_of, inflate
from tests.unit.sources.made import NOW, deliveries

PLAIN = b'{"id":"s12","action":"opened","issue":{"id":7}}'
LIMIT = 1024 * 1024
source = github(secrets="k-test-1")
plain_source = replace(source, content_encoding="signed-plain")
wire_source = replace(source, content_encoding="signed-compressed")


def sent(signed: bytes, body: bytes, coding: str = "gzip") -> Request:
    assert source.sign is not None
    return Request(
        "github", "POST", Headers([*source.sign(signed, NOW, event_type="issues"), ("Content-Encoding", coding)]), body
    )


def verify(chosen: Source, request: Request) -> Request:
    signed = as_signed(chosen.content_encoding, request, LIMIT)
    chosen.verifier.verify(signed, NOW)
    return as_read(chosen.content_encoding, signed, LIMIT)


def test_b012_the_setting_decides_which_bytes_are_signed() -> None:
    packed = gzip.compress(PLAIN)
    over_plain, over_wire = sent(PLAIN, packed), sent(packed, packed)
    assert verify(plain_source, over_plain).body == PLAIN
    assert verify(wire_source, over_wire).body == PLAIN
    for chosen, request in ((plain_source, over_wire), (wire_source, over_plain)):
        with pytest.raises(NotVerified):
            verify(chosen, request)
    for request in (over_plain, over_wire):
        with pytest.raises(UnsupportedEncoding, match="content_encoding="):
            verify(source, request)


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "gzip, br", "compress", "\xe9"])
def test_b012_an_unknown_coding_is_415(coding: str) -> None:
    for chosen in (source, plain_source, wire_source):
        with pytest.raises(UnsupportedEncoding) as caught:
            verify(chosen, sent(PLAIN, PLAIN, coding))
        assert caught.value.status == 415


@pytest.mark.parametrize("coding", ["identity", "", " Identity ", "identity, identity"])
def test_a_body_that_is_not_compressed_is_taken_by_every_source(coding: str) -> None:
    for chosen in (source, plain_source, wire_source):
        request = sent(PLAIN, PLAIN, coding)
        assert verify(chosen, request) is request


def test_codings_are_read_from_all_lines_and_in_any_case() -> None:
    assert coding_of(Headers([("content-ENCODING", " GZip ")])) == "gzip"
    assert coding_of(Headers([("content-encoding", "identity"), ("Content-Encoding", "br")])) == "br"
    assert coding_of(Headers()) is None


def test_b012_a_bomb_is_stopped_at_the_limit_with_flat_memory() -> None:
    bomb = gzip.compress(b"\0" * (256 * LIMIT), 9)
    assert len(bomb) < LIMIT
    for chosen, request in ((plain_source, sent(PLAIN, bomb)), (wire_source, sent(bomb, bomb))):
        tracemalloc.start()
        with pytest.raises(BodyTooLarge, match=f"limit of {LIMIT} bytes"):
            verify(chosen, request)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * LIMIT


def test_a_body_of_exactly_the_limit_is_taken() -> None:
    assert inflate(gzip.compress(b"x" * 1000), "gzip", 1000) == b"x" * 1000
    with pytest.raises(BodyTooLarge):
        inflate(gzip.compress(b"x" * 1001), "gzip", 1000)


@given(st.lists(st.binary(max_size=100_000), min_size=1, max_size=3), st.sampled_from([1, 6, 9]))
def test_what_was_compressed_comes_back(members: list[bytes], level: int) -> None:
    packed = b"".join(gzip.compress(each, level) for each in members)
    whole = b"".join(members)
    assert inflate(packed, "gzip", len(whole)) == inflate(packed, "x-gzip") == whole
    assert inflate(zlib.compress(whole, level), "deflate", len(whole)) == whole


PACKED = gzip.compress(PLAIN, mtime=0)
DAMAGED = {
    "empty": (b"", "it is empty"),
    "plain": (b"{}", "its bytes are damaged"),
    "without the last byte": (PACKED[:-1], "it is cut off"),
    "without its end": (PACKED[:20], "it is cut off"),
    "with a byte behind it": (PACKED + b"x", "the body is not gzip"),
    "with a second member cut off": (PACKED + PACKED[:-1], "it is cut off"),
    "with another checksum": (PACKED[:-8] + bytes(8), "its bytes are damaged"),
    "of many members": (gzip.compress(b"", mtime=0) * 65, "more than 64 members"),
}


@pytest.mark.parametrize(("body", "told"), DAMAGED.values(), ids=DAMAGED.keys())
def test_bytes_that_cannot_be_inflated_are_refused_before_and_kept_after_they_verified(body: bytes, told: str) -> None:
    with pytest.raises(NotUnderstood, match=told):
        verify(plain_source, sent(PLAIN, body))
    with pytest.raises(UnreadableBody, match=told):
        verify(wire_source, sent(body, body))


def test_a_zlib_stream_with_something_behind_it_is_refused() -> None:
    with pytest.raises(UnreadableBody, match="followed by other bytes"):
        inflate(zlib.compress(PLAIN) + b"x", "deflate")


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate"]))
def test_any_bytes_raise_nothing_else(body: bytes, coding: str) -> None:
    for damaged in (body, gzip.compress(body)[: len(body)], gzip.compress(body)[:10] + body):
        with contextlib.suppress(UnreadableBody, BodyTooLarge):
            inflate(damaged, coding, 1000)


def test_a_handler_gets_the_inflated_document_of_the_bytes_that_are_kept() -> None:
    packed = gzip.compress(PLAIN)
    for chosen in (plain_source, wire_source, replace(wire_source, name="again")):
        (delivery,) = deliveries(chosen, sent(PLAIN, packed))
        assert delivery.body == packed
        assert delivery.data["issue"] == {"id": 7}
    (plain,) = deliveries(plain_source, sent(PLAIN, PLAIN, "identity"))
    assert plain.data["issue"] == {"id": 7}


def test_an_unknown_rule_is_told_at_start() -> None:
    def document(delivery: Delivery) -> Any:
        return None

    with pytest.raises(SetupError, match="content_encoding='gzip' is not known"):
        Source("x", "x", source.verifier, source.read, document, source.deleted, content_encoding="gzip")  # type: ignore[arg-type]
