"""A delivery as the worker would make it of a request."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from hookledger.delivery import Delivery
from hookledger.http import Request
from hookledger.sources import Source
from hookledger.sources.catalogue import provider
from hookledger.version import read_version
from tests.unit.sources.made import EVERY, Made, make

Deliver = Callable[[Source, Request], Delivery]


@pytest.fixture
def deliver() -> Deliver:
    def delivered(source: Source, request: Request) -> Delivery:
        (event,) = source.read(request)
        return Delivery(
            id=1,
            source=source.name,
            event_id=event.event_id or "digest",
            event_type=event.event_type,
            resource=event.resource,
            version=read_version(event.version),
            received_at=datetime(2023, 11, 14, tzinfo=UTC),
            position=0,
            attempt=1,
            body=request.body,
            headers_json=request.headers.to_json(),
            read_document=source.document,
            is_deleted=source.deleted,
        )

    return delivered


@pytest.fixture(params=EVERY)
def made(request: pytest.FixtureRequest) -> Made:
    """Every provider in turn."""
    return make(provider(request.param))
