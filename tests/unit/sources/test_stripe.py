"""What the source `stripe` reads from a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from hookledger.delivery import Delivery, Event
from hookledger.errors import SetupError
from hookledger.http import Headers, Request
from hookledger.sources import Source, stripe
from hookledger.version import read_version

source = stripe(secrets="whsec_test")


def request(document: Any) -> Request:
    return Request("stripe", "POST", Headers(), json.dumps(document).encode())


def read(document: Any) -> Event:
    (event,) = source.read(request(document))
    return event


def test_an_event_is_read_from_the_signed_body() -> None:
    assert read(
        {
            "id": "evt_1",
            "type": "customer.updated",
            "created": 1533204620,
            "data": {"object": {"id": "cus_1", "object": "customer"}},
        }
    ) == Event("evt_1", "customer.updated", "cus_1", datetime(2018, 8, 2, 10, 10, 20, tzinfo=UTC))


def test_a_thin_event_of_v2_is_read() -> None:
    event = read(
        {
            "id": "evt_2",
            "object": "v2.core.event",
            "type": "v1.billing.meter.error_report_triggered",
            "created": "2025-10-04T15:13:32.232083866Z",
            "related_object": {"id": "mtr_1", "type": "billing.meter"},
        }
    )
    assert (event.event_id, event.resource) == ("evt_2", "mtr_1")
    assert read_version(event.version) == read_version("2025-10-04T15:13:32.232083Z")


def test_b028_events_of_one_second_have_equal_versions() -> None:
    first = read({"id": "o1", "created": 1700000000})
    second = read({"id": "o2", "created": 1700000000})
    assert read_version(first.version) == read_version(second.version)


@pytest.mark.parametrize("event_id", ["", None, 0, " ", {}, [], False])
def test_b026_a_blank_id_is_no_id(event_id: Any) -> None:
    assert read({"id": event_id, "type": "a"}).event_id is None
    assert read({"type": "a"}).event_id is None


def test_b016_a_number_as_an_id_is_exact() -> None:
    (event,) = source.read(Request("stripe", "POST", Headers(), b'{"id":9007199254740993}'))
    assert event.event_id == "9007199254740993"


@pytest.mark.parametrize(
    "document",
    [
        {"id": "e", "type": 5, "created": None, "data": None},
        {"id": "e", "type": {}, "created": [], "data": {"object": None}},
        {"id": "e", "type": "\ud800\x00", "created": "x", "data": {"object": {"id": {}}}},
        {"id": "e", "data": [], "related_object": "x"},
    ],
)
def test_an_event_of_strange_shape_is_read_as_far_as_it_goes(document: Any) -> None:
    event = read(document)
    assert event.event_id == "e"
    assert event.resource is None


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"null", b"{", b""])
def test_a_body_that_is_no_event_is_unreadable(body: bytes) -> None:
    (event,) = source.read(Request("stripe", "POST", Headers(), body))
    assert event.unreadable is not None
    assert event.event_id is None


def test_a_delivery_gives_the_document_and_tells_deletions(
    deliver: Callable[[Source, Request], Delivery],
) -> None:
    document = {"id": "evt_3", "type": "customer.deleted", "data": {"object": {"id": "cus_1"}}}
    delivery = deliver(source, request(document))
    assert delivery.data == document
    assert delivery.deleted
    assert not deliver(source, request({"id": "e", "type": "customer.updated"})).deleted


@pytest.mark.parametrize("tolerance", [0, -1, float("nan"), float("inf"), None, "300", True])
def test_a_tolerance_that_would_switch_the_check_off_is_refused(tolerance: Any) -> None:
    with pytest.raises(SetupError, match="tolerance="):
        stripe(secrets="whsec_test", tolerance=tolerance)
