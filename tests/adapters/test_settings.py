"""The settings of a receiver reach the intake, and its answers reach the sender."""

from __future__ import annotations

import pytest

from tests.adapters.conftest import Serve
from tests.adapters.kinds import KINDS
from tests.adapters.served import event_id


@pytest.mark.parametrize("kind", KINDS)
def test_limit_and_probes_can_be_set(serve: Serve, kind: str) -> None:
    served = serve(kind, max_body_bytes=1000, answer_probes=False)
    assert served.request("GET", served.path()).status == 405
    for length, status in ((1000, 200), (1001, 413)):
        body = bytes(length)
        for pieces in ([], [body[:600], body[600:]]):
            event = event_id()
            answer = served.post_chunked(pieces, event) if pieces else served.post(body, event)
            assert answer.status == status
            assert [stored.body for stored in served.stored(event)] == [body] * (status == 200)


@pytest.mark.parametrize("kind", ["starlette", "starlette-async", "flask-gunicorn"])
def test_no_database_means_come_again(serve: Serve, kind: str) -> None:
    """D1."""
    served = serve(kind, database_url="postgresql+psycopg://nobody@127.0.0.1:1/nothing")
    answer = served.post(b"{}", event_id())
    assert (answer.status, answer.header("retry-after")) == (503, "5")
