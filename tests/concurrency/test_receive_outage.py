"""A database that is away, or silent, behind real servers: 503 in time, and all is accepted when it is back (D1)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hookledger.embedded import EmbeddedPostgres
from hookledger.receive import IntakeSettings
from tests.adapters.served import Served, serving
from tests.ledger import Ledger
from tests.processes import wait_until
from tests.proxy import Proxy

PROMISED_SECONDS = 5.0
ANSWER_WITHIN = IntakeSettings().answer_within
HASTY = {"answer_within": 4.0, "cut_after": 1.2}
"""Settings in place of the default, for a test that would mostly wait."""
KINDS = ("starlette", "starlette-async", "flask-gunicorn")


def post_all(served: Served, events: list[str]) -> list[int]:
    """Send events at once, each answered in time."""

    def post(event: str) -> int:
        began = time.monotonic()
        answer = served.post(f"body of {event}".encode(), event)
        assert time.monotonic() - began < PROMISED_SECONDS
        assert answer.status == 200 or (answer.status == 503 and answer.header("retry-after"))
        return answer.status

    with ThreadPoolExecutor(len(events)) as threads:
        return list(threads.map(post, events))


def accepts(served: Served, event: str) -> bool:
    return served.post(f"body of {event}".encode(), event).status == 200


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_database_is_503_in_time_and_all_is_accepted_afterwards(
    kind: str, own_server: EmbeddedPostgres, own_database_url: str
) -> None:
    with serving(kind, own_database_url, answer_within=ANSWER_WITHIN) as served:
        assert accepts(served, "before")
        for stop in (own_server.halt, own_server.kill):
            stop()
            for _ in range(2):
                assert post_all(served, [f"e{number}" for number in range(6)]) == [503] * 6
            own_server.start()
            wait_until(lambda: accepts(served, "back"))
        assert post_all(served, [f"e{number}" for number in range(6)]) == [200] * 6
        ledger = Ledger(own_database_url)
        assert sorted(ledger.pending()) == sorted(["before", "back", *[f"e{number}" for number in range(6)]])
        assert ledger.consistent()


@pytest.mark.parametrize("kind", KINDS)
def test_a_silent_network_stops_no_server(kind: str, database_url: str) -> None:
    """The whole process must go on: while it waits for the network, it answers those who only ask."""
    with Proxy(database_url) as proxy, serving(kind, proxy.url, **HASTY) as served:
        wait_until(lambda: accepts(served, "before"))
        proxy.pause()
        for _ in range(2):
            assert post_all(served, [f"e{number}" for number in range(4)]) == [503] * 4
            assert served.request("HEAD", served.path()).status == 200
        proxy.resume()
        wait_until(lambda: accepts(served, "back"))
        assert post_all(served, [f"e{number}" for number in range(4)]) == [200] * 4
    assert Ledger(database_url).consistent()
