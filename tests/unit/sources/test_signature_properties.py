"""Properties of every scheme: what is signed verifies, what is changed does not, and nothing else is raised."""

from __future__ import annotations

import contextlib
import json

from hypothesis import given
from hypothesis import strategies as st

from hookledger.delivery import Event
from hookledger.errors import NotVerified, UncomparableVersion, UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources import Source, github, hmac_source, standard_webhooks, stripe
from hookledger.version import read_version

NOW = 1_700_000_000
STANDARD_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
SOURCES: list[Source] = [
    github(secrets=["k-test-1", "k-test-2"]),
    stripe(secrets="whsec_k-test-1"),
    standard_webhooks(secrets=STANDARD_SECRET),
    hmac_source("shop", header="X-Sig", prefix="v1=", secrets="k-test-1", resource="data.id", version="at"),
    hmac_source(
        "milliseconds",
        header="X-Sig",
        encoding="base64",
        algorithm="sha512",
        signed="v0:{id}:{timestamp}:{body}",
        id_header="X-Id",
        timestamp_header="X-Time",
        timestamp_unit="milliseconds",
        secrets="k-test-1",
        event_id="header:X-Id",
        version="header:X-Time",
        version_unit="milliseconds",
    ),
    hmac_source(
        "iso",
        header="X-Sig",
        signed="{timestamp}{body}",
        timestamp_header="X-Time",
        timestamp_unit="iso8601",
        secrets="k-test-1",
        format="form",
        event_id="payload.id",
        version="payload.at",
        version_unit="seconds",
    ),
    hmac_source(
        "items",
        header="X-Sig",
        prefix=("h1=", "h2="),
        separator=";",
        signed="{timestamp}:{body}",
        timestamp_item="ts=",
        secrets="k-test-1",
        format="bytes",
        event_id=None,
        event_type="header:X-Type",
    ),
]
sources = st.sampled_from(SOURCES)
bodies = st.binary(max_size=200)
UNSIGNED = {"x-github-event", "x-github-delivery"}


def verifies(source: Source, headers: Headers, body: bytes) -> bool:
    try:
        source.verifier.verify(Request(source.name, "POST", headers, body), NOW)
    except NotVerified:
        return False
    return True


def signed(source: Source, body: bytes) -> Headers:
    assert source.sign is not None
    return source.sign(body, NOW)


@given(sources, bodies)
def test_a_signed_request_verifies(source: Source, body: bytes) -> None:
    assert verifies(source, signed(source, body), body)


@given(sources, st.binary(min_size=1, max_size=200), st.data())
def test_a_body_with_one_bit_changed_does_not_verify(source: Source, body: bytes, data: st.DataObject) -> None:
    changed = bytearray(body)
    changed[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert not verifies(source, signed(source, body), bytes(changed))


@given(sources, bodies, st.data())
def test_a_signed_header_with_one_bit_changed_does_not_verify(source: Source, body: bytes, data: st.DataObject) -> None:
    pairs = list(signed(source, body))
    numbers = [number for number, (name, _) in enumerate(pairs) if name.lower() not in UNSIGNED]
    number = data.draw(st.sampled_from(numbers))
    name, value = pairs[number]
    wire = bytearray(value.encode("latin-1"))
    wire[data.draw(st.integers(0, len(wire) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    changed = wire.decode("latin-1")
    pairs[number] = (name, changed)
    if changed.lower() != value.lower():  # hex digits count in either case
        assert not verifies(source, Headers(pairs), body)


@given(sources, bodies, st.integers(301, 10**9))
def test_a_request_is_refused_when_its_time_is_over(source: Source, body: bytes, seconds: int) -> None:
    headers = signed(source, body)
    request = Request(source.name, "POST", headers, body)
    timed = source.name not in ("github", "shop")
    for now in (NOW + seconds, NOW - seconds):
        try:
            source.verifier.verify(request, now)
        except NotVerified:
            assert timed
        else:
            assert not timed


NAMES = [
    "X-Hub-Signature-256",
    "X-GitHub-Event",
    "X-GitHub-Delivery",
    "Content-Type",
    "Stripe-Signature",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "svix-id",
    "svix-timestamp",
    "svix-signature",
    "X-Sig",
    "X-Id",
    "X-Time",
    "X-Type",
]
PIECES = ["t=", "ts=", "v1=", "v1,", "sha256=", "h1=", "=", ",", ";", " ", "1700000000", "\xe9", "a0", "\x00"]
values = st.one_of(
    st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")),
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.just("application/x-www-form-urlencoded"),
    st.text(max_size=20),
)
any_headers = st.lists(st.tuples(st.sampled_from(NAMES), values), max_size=10).map(Headers)
json_bodies = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "type", "data", "object", "created", "at", "timestamp", "action", "issue"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(sources, any_headers, bodies)
def test_arbitrary_requests_raise_nothing_but_not_verified(source: Source, headers: Headers, body: bytes) -> None:
    assert not verifies(source, headers, body)


@given(sources, any_headers, st.one_of(bodies, json_bodies.map(lambda each: json.dumps(each).encode())))
def test_arbitrary_bodies_raise_nothing_but_unreadable_body(source: Source, headers: Headers, body: bytes) -> None:
    try:
        events = source.read(Request(source.name, "POST", headers, body))
    except UnreadableBody:
        return
    (event,) = events
    assert isinstance(event, Event)
    for text in (event.event_id, event.event_type, event.resource):
        assert text is None or text.encode("utf-8").find(b"\x00") < 0
    assert event.event_id is None or event.event_id.strip()
    with contextlib.suppress(UncomparableVersion):
        read_version(event.version)
