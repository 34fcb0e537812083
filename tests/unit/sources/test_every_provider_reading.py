"""What every provider of the catalogue reads of its own sample, and of whatever else a sender sends."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookledger.delivery import Event
from hookledger.errors import Refused, UncomparableVersion, UnreadableBody
from hookledger.http import Headers, Request, Response
from hookledger.sources import Source
from hookledger.sources.catalogue import provider
from hookledger.sources.fields import EACH_REQUEST
from hookledger.version import read_version
from tests.unit.sources.made import EVERY, NOW, Made, deliveries, make, verifies


def test_what_is_read_of_the_sample_is_what_it_says(made: Made) -> None:
    events = made.source.read(made.request())
    assert [event.unreadable for event in events] == [None] * len(made.sample.events)
    for event, expected in zip(events, made.sample.events, strict=True):
        wanted = expected.event
        if made.provider.event_id == EACH_REQUEST:
            wanted = replace(wanted, event_id=event.event_id)
        assert (event.event_id, event.event_type, event.resource) == (
            wanted.event_id,
            wanted.event_type,
            wanted.resource,
        )
        assert read_version(event.version) == read_version(wanted.version)


def test_what_a_handler_gets_of_the_sample(made: Made) -> None:
    for delivery, expected in zip(deliveries(made.source, made.request()), made.sample.events, strict=True):
        assert delivery.deleted is expected.deleted
        assert delivery.data is not None
        assert delivery.data == delivery.data
        if made.provider.items is not None:
            assert isinstance(delivery.data, dict)


def test_the_event_id_survives_a_retry(made: Made) -> None:
    first = made.source.read(made.request(NOW))
    again = made.source.read(made.request(NOW + 3600))
    if made.provider.event_id == EACH_REQUEST:
        assert {event.event_id for event in first}.isdisjoint({event.event_id for event in again})
        return
    assert [event.event_id for event in first] == [event.event_id for event in again]
    assert [event.content for event in first] == [event.content for event in again]


def test_events_of_a_batch_have_ids_of_their_own(made: Made) -> None:
    found = [event.event_id for event in made.source.read(made.request()) if event.event_id is not None]
    assert len(found) == len(set(found))


def test_a_source_reads_what_it_says_that_it_reads(made: Made) -> None:
    assert made.source.has_resource is (made.provider.resource is not None)
    assert made.source.has_version is (made.provider.version is not None)


# Answers


def test_answers_are_those_that_senders_understand(made: Made) -> None:
    assert 200 <= made.source.accepted.status < 300
    assert 400 <= made.source.refused_status < 500
    assert made.source.refused_status != 410


def test_the_sample_is_no_handshake(made: Made) -> None:
    request = made.request()
    assert made.source.handshake(request) is None
    assert made.source.answer_unverified(request) is None
    for method in ("GET", "HEAD", "OPTIONS"):
        assert made.source.answer_probe(Request(made.source.name, method, Headers(), b"")) is None


# Whatever a sender sends

PIECES = ["t=", "v1=", "v1,", "sha256=", "v0=", "=", ",", ";", " ", "1700000000", "\xe9", "a0", "\x00", "Basic "]
header_values = st.one_of(
    st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")),
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.sampled_from(["application/x-www-form-urlencoded", "application/json", "1700000000", "gzip"]),
    st.text(max_size=20),
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


def keys_of(made: Made) -> list[str]:
    """The words that stand in the sample's body, so that what is made up comes near to what is sent."""
    return sorted(set(re.findall(r"[A-Za-z_][A-Za-z0-9_-]*", made.sample.body.decode("utf-8", "replace"))))[:60]


def documents(made: Made) -> st.SearchStrategy[bytes]:
    names = st.sampled_from(keys_of(made) or ["id"])
    inner = st.recursive(
        scalars, lambda deeper: st.lists(deeper, max_size=3) | st.dictionaries(names, deeper, max_size=4), max_leaves=12
    )
    return inner.map(lambda document: json.dumps(document).encode())


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(data=st.data())
def test_whatever_is_sent_raises_nothing_but_refused(name: str, data: st.DataObject) -> None:
    made = make(provider(name))
    bodies = st.binary(max_size=120) | documents(made) | st.just(made.sample.body)
    headers = [each for each in {*made.signed_headers, *(n for n, _ in made.sample.headers)} if ":" not in each]
    pairs = st.lists(st.tuples(st.sampled_from(sorted(headers) or ["X"]), header_values), max_size=8)
    request = Request(
        made.source.name,
        data.draw(st.sampled_from(["POST", "GET", "HEAD", "OPTIONS"])),
        Headers(data.draw(pairs)),
        data.draw(bodies),
        query=data.draw(st.text(max_size=30) | st.sampled_from(["challenge=x", "a=%ff&b", "validationToken=%00"])),
    )
    with pytest.raises(Refused):
        made.source.verifier.verify(request, NOW)
    _read_anything(made.source, request)
    for answer in (made.source.answer_probe(request), made.source.answer_unverified(request)):
        assert answer is None or _harmless(answer)
    answered = made.source.handshake(request)
    assert answered is None or _harmless(answered)


def _read_anything(source: Source, request: Request) -> None:
    try:
        events = source.read(request)
    except UnreadableBody:
        return
    for event in events:
        assert isinstance(event, Event)
        for text in (event.event_id, event.event_type, event.resource):
            assert text is None or "\x00" not in text
        assert event.event_id is None or event.event_id.strip()
        with contextlib.suppress(UncomparableVersion):
            read_version(event.version)


def _harmless(answer: Response) -> bool:
    return answer.status not in range(300, 400) and answer.status != 410 and len(answer.body) <= 8192


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_whatever_is_signed_verifies(name: str, data: st.DataObject) -> None:
    made = make(provider(name))
    body = data.draw(documents(made) if made.source.sign_body else st.binary(max_size=120) | documents(made))
    request = _signed(made, body)
    if request is not None:
        assert verifies(made.source, request)


def _signed(made: Made, body: bytes) -> Request | None:
    try:
        return made.request(body=body)
    except UnreadableBody:
        return None  # a signature in the body needs a body that can hold one
