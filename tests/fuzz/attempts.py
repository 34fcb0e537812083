"""Requests near to what a provider sends, and far from it, described without a time so that they can be repeated."""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from hypothesis import strategies as st

from hookledger.errors import HookledgerError
from hookledger.http import Headers, Request
from tests.unit.sources.made import Made

Pair = tuple[str, str]

EXTRA = (
    "Content-Type",
    "Content-Encoding",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "Expect",
    "Accept-Encoding",
    "Cookie",
    "X-Event-Id",
    "Upgrade",
    "Range",
)
VALUES = (
    "",
    "gzip",
    "br",
    "gzip, gzip",
    "identity",
    "application/json",
    "application/x-www-form-urlencoded; charset=utf-7",
    "multipart/form-data; boundary=",
    "text/plain",
    "100-continue",
    "t=1,v1=00",
    "sha256=",
    "Bearer ",
    "Basic Og==",
    "\xe9",
    "9" * 400,
    "=,;" * 100,
    "bytes=0-",
)
QUERIES = (
    "",
    "a=1&a=2",
    "%",
    "%00",
    "challenge=%F0%9F",
    "validationToken=x",
    "hub.challenge=1&hub.mode=subscribe",
    "&&&",
)
METHODS = ("POST",) * 12 + ("GET", "HEAD", "OPTIONS", "PUT", "DELETE")

odd_text = st.text(st.characters(exclude_categories=()), max_size=12)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**53 + 1, -(2**63), 10**400, 0]),
    st.floats(),
    odd_text,
    st.sampled_from(["", " ", "\x00", "\ud83d", "2099-01-01T00:00:00Z", "9" * 600, "x" * 3000]),
)
values = st.recursive(
    scalars, lambda deeper: st.lists(deeper, max_size=3) | st.dictionaries(odd_text, deeper, max_size=3), max_leaves=6
)
header_values = st.one_of(
    st.sampled_from(VALUES),
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF, exclude_characters="\x7f\x85\xa0"), max_size=40),
)
odd_bodies = st.one_of(
    st.binary(max_size=200),
    values.map(lambda document: json.dumps(document).encode()),
    values.map(lambda document: json.dumps(document, ensure_ascii=False).encode("utf-16", "surrogatepass")),
    st.lists(st.tuples(odd_text.map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=20))).map(
        lambda pairs: urlencode(pairs).encode()
    ),
    st.sampled_from(
        [
            b"",
            b"[]",
            b"null",
            b"{}" * 3,
            b"[" * 30_000,
            b'{"a":' * 20_000,
            b'{"id":' + b"9" * 5000 + b"}",
            b'{"id":1e999}',
            b'{"id":NaN}',
            b'\xef\xbb\xbf{"id":"x"}',
            gzip.compress(b'{"id":"x"}', mtime=0),
            gzip.compress(bytes(2_000_000), mtime=0),
            b"payload=" + b"%" * 500,
            b"a=1&" * 3000,
            bytes(300_000),
        ]
    ),
)


@dataclass(frozen=True)
class Attempt:
    """A request that is still to be signed.

    Args:
        source: whose it claims to be.
        body: its bytes.
        signed: whether the signature is that of the body; else it is that of the sample.
        dropped: the header line that is left out, counted round.
        added: header lines that come on top.
        changed: what is put in place of the value of a header line, counted round.
        query: of the URL; None for the provider's own.
        method: of HTTP.
        offset: seconds between our clock and the sender's.
    """

    source: str
    body: bytes
    signed: bool = True
    dropped: int | None = None
    added: tuple[Pair, ...] = ()
    changed: tuple[int, str] | None = None
    query: str | None = None
    method: str = "POST"
    offset: int = 0

    @property
    def is_genuine(self) -> bool:
        """Whether nothing was done to it once it was signed."""
        plain = self.signed and self.dropped is None and self.changed is None and not self.added
        return plain and self.query is None and self.method == "POST" and not self.offset

    def request(self, made: Made) -> Request:
        """The request, made and signed now."""
        now = time.time() + self.offset
        try:
            signed = made.request(now, self.body if self.signed else None)
        except (HookledgerError, LookupError, TypeError, ValueError, AttributeError):
            # Its signature stands in the body or is about its fields, and this one has none.
            signed = made.request(now)
            signed = Request(signed.source, "POST", signed.headers, self.body, query=signed.query)
        body = signed.body if self.signed else self.body
        lines = list(signed.headers)
        if self.dropped is not None and lines:
            del lines[self.dropped % len(lines)]
        if self.changed is not None and lines:
            place = self.changed[0] % len(lines)
            lines[place] = (lines[place][0], self.changed[1])
        query = signed.query if self.query is None else self.query
        return Request(signed.source, self.method, Headers([*lines, *self.added]), body, query=query)


@st.composite
def changed_samples(draw: st.DrawFn, sample: bytes) -> bytes:
    """The sample's body with something else in some places."""
    try:
        document = json.loads(sample)
    except ValueError:
        return draw(changed_bytes(sample))
    for _ in range(draw(st.integers(0, 3))):
        document = _with(document, draw(st.lists(st.integers(0, 20), max_size=5)), draw(values))
    return json.dumps(document).encode()


@st.composite
def changed_bytes(draw: st.DrawFn, sample: bytes) -> bytes:
    """The bytes with some others in their place, some more, or some missing."""
    body = bytearray(sample)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(body)))
        end = place + draw(st.sampled_from([0, 1, 1, 7, len(body)]))
        body[place:end] = draw(st.binary(max_size=4))
    return bytes(body)


@cache
def bodies(sample: bytes) -> st.SearchStrategy[bytes]:
    """Bodies near to the sample and far from it."""
    return st.one_of(
        st.just(sample), changed_samples(sample), changed_samples(sample), changed_bytes(sample), odd_bodies
    )


@st.composite
def attempts(draw: st.DrawFn, senders: dict[str, Made]) -> Attempt:
    """Requests of these senders."""
    name = draw(st.sampled_from(sorted(senders)))
    body = draw(bodies(senders[name].sample.body))
    if draw(st.booleans()):
        return Attempt(name, body)
    return Attempt(
        name,
        body,
        draw(st.sampled_from([True, True, True, False])),
        draw(st.none() | st.none() | st.integers(0, 9)),
        tuple(draw(st.lists(st.tuples(st.sampled_from(EXTRA), header_values), max_size=2))),
        draw(st.none() | st.none() | st.tuples(st.integers(0, 9), header_values)),
        draw(st.none() | st.none() | st.sampled_from(QUERIES)),
        draw(st.sampled_from(METHODS)),
        draw(st.sampled_from([0, 0, 0, 200, -1000, 10**9])),
    )


def _with(document: Any, path: list[int], value: Any) -> Any:
    """The document with the value where the path leads to, each step counted round."""
    if not path or not isinstance(document, dict | list) or not document:
        return value
    if isinstance(document, dict):
        name = sorted(document)[path[0] % len(document)]
        return {**document, name: _with(document[name], path[1:], value)}
    place = path[0] % len(document)
    return [*document[:place], _with(document[place], path[1:], value), *document[place + 1 :]]
