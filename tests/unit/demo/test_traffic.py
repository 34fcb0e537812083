"""The traffic is the same each time, is what the providers would send, and is as rough as the demo says."""

from __future__ import annotations

from collections import Counter

import pytest

from hookledger.demo.hooks import inbox
from hookledger.demo.traffic import Event, Kind, Traffic, make_traffic
from hookledger.errors import NotVerified
from hookledger.http import Headers, Request
from hookledger.version import read_version

NOW = 1_800_000_000.0
EVENTS = 4_000


@pytest.fixture(scope="module")
def traffic() -> Traffic:
    return make_traffic(EVENTS)


def request_of(event: Event, *, tampered: bytes = b"") -> Request:
    body = event.body()
    return Request(event.kind.source, "POST", Headers(event.headers(body, NOW).items()), body + tampered)


def test_the_same_seed_gives_the_same_bytes(traffic: Traffic) -> None:
    again = make_traffic(EVENTS)
    assert again == traffic
    assert [event.body() for event in again.order] == [event.body() for event in traffic.order]
    assert make_traffic(EVENTS, seed=2) != traffic


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_any_number_of_events(count: int) -> None:
    traffic = make_traffic(count)
    assert len({event.key for event in traffic.events}) == count
    assert {event.key for event in traffic.order} == {event.key for event in traffic.events}


def test_a_fifth_is_sent_twice(traffic: Traffic) -> None:
    times = Counter(event.key for event in traffic.order)
    assert traffic.copies == EVENTS // 5
    assert Counter(times.values()) == {1: EVENTS - EVENTS // 5, 2: EVENTS // 5}


def test_some_copies_follow_at_once_and_some_much_later(traffic: Traffic) -> None:
    first: dict[tuple[str, str], int] = {}
    apart = [
        place - first[event.key]
        for place, event in enumerate(traffic.order)
        if first.setdefault(event.key, place) != place
    ]
    assert sum(distance < 16 for distance in apart) > traffic.copies / 4
    assert sum(distance > 200 for distance in apart) > traffic.copies / 4


def test_many_snapshots_come_after_a_newer_one(traffic: Traffic) -> None:
    newest: Counter[tuple[Kind, str]] = Counter()
    late = 0
    for event in traffic.order:
        resource = (event.kind, event.resource)
        late += event.kind.is_snapshot and event.moment < newest[resource]
        newest[resource] = max(newest[resource], event.moment)
    assert late > EVENTS / 20


def test_there_are_all_kinds_and_ties_and_deletes(traffic: Traffic) -> None:
    assert {event.kind for event in traffic.events} == set(Kind)
    assert any(event.deleted for event in traffic.events)
    moments = Counter((event.kind, event.resource, event.moment) for event in traffic.events if event.kind.is_snapshot)
    assert sum(times > 1 for times in moments.values()) > EVENTS / 40


def test_the_number_tells_the_snapshots_of_a_resource_apart(traffic: Traffic) -> None:
    snapshots = [event for event in traffic.events if event.kind.is_snapshot]
    assert len({(event.resource, event.number) for event in snapshots}) == len(snapshots)


def test_bodies_are_of_realistic_size(traffic: Traffic) -> None:
    sizes = [len(event.body()) for event in traffic.events]
    assert 600 < sum(sizes) / len(sizes) < 1_000


@pytest.mark.parametrize("kind", list(Kind))
def test_the_sources_verify_and_read_it(traffic: Traffic, kind: Kind) -> None:
    source = inbox.source(kind.source)
    for sent in [event for event in traffic.events if event.kind is kind][:50]:
        request = request_of(sent)
        source.verifier.verify(request, NOW)
        (read,) = source.read(request)
        assert (read.event_id, read.event_type) == (sent.event_id, sent.event_type)
        assert len(inbox.handlers_for(kind.source, read.event_type)) == 1
        if kind.is_snapshot:
            assert read.resource == sent.resource
            version = read_version(read.version)
            assert version is not None
            assert int(version[0]) == sent.moment
        with pytest.raises(NotVerified):
            source.verifier.verify(request_of(sent, tampered=b" "), NOW)
