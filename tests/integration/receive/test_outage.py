"""A database that is away, and comes back (D1)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hookledger.embedded import EmbeddedPostgres
from tests.integration.receive.conftest import MakeReceiving
from tests.ledger import Ledger
from tests.processes import wait_until
from tests.receiving import Receiving, event

PROMISED_SECONDS = 5.0


def expect_refusal(receiving: Receiving, rounds: int = 3) -> None:
    for number in range(rounds):
        began = time.monotonic()
        answers = receiving.post_all([event(f"away{number}"), event("away")])
        assert time.monotonic() - began < PROMISED_SECONDS
        assert [answer.status for answer in answers] == [503, 503]
        assert all("retry-after" in dict(answer.headers) for answer in answers)


@pytest.mark.parametrize("options", [{}, {"pool_pre_ping": True}], ids=["plain", "pre-ping"])
@pytest.mark.parametrize("end", ["halt", "kill"])
def test_a_stopped_database_is_503_and_a_started_one_is_used_again(
    make_receiving: MakeReceiving,
    own_server: EmbeddedPostgres,
    own_database_url: str,
    options: dict[str, Any],
    end: str,
) -> None:
    ledger = Ledger(own_database_url)
    receiving = make_receiving(own_database_url, **options)
    before = [event(f"e{number}") for number in range(20)]
    assert {answer.status for answer in receiving.post_all(before)} == {200}
    getattr(own_server, end)()
    expect_refusal(receiving)
    own_server.start()
    wait_until(lambda: receiving.post(event("back")).status == 200)
    assert {answer.status for answer in receiving.post_all([*before, event("away"), event("away0")])} == {200}
    assert sorted(ledger.event_ids()) == sorted([*[f"e{number}" for number in range(20)], "back", "away", "away0"])
    assert ledger.consistent()


def test_a_restart_between_two_requests_costs_none_of_them(
    make_receiving: MakeReceiving, own_server: EmbeddedPostgres, own_database_url: str
) -> None:
    """The connections of the pool are dead, which is noticed in time to try again on a new one."""
    receiving = make_receiving(own_database_url)
    requests = [event(f"e{number}") for number in range(20)]
    for _ in range(3):
        assert {answer.status for answer in receiving.post_all(requests)} == {200}
        own_server.restart()
    assert receiving.post(event("last")).status == 200
    assert Ledger(own_database_url).count("deliveries") == 21


def test_sessions_that_are_ended_by_the_administrator_cost_no_request(receiving: Receiving, ledger: Ledger) -> None:
    for number in range(5):
        assert receiving.post(event(f"e{number}")).status == 200
        ledger.run(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert len(ledger.event_ids()) == 5


def test_a_missing_schema_is_503_until_it_is_there(
    receiving: Receiving, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.run("ALTER SCHEMA hookledger RENAME TO elsewhere")
    expect_refusal(receiving, 1)
    assert "run `hookledger db upgrade`" in caplog.text
    ledger.run("ALTER SCHEMA elsewhere RENAME TO hookledger")
    assert receiving.post(event("away")).status == 200


def test_a_server_that_became_a_standby_is_503_and_its_connections_are_given_up(
    make_receiving: MakeReceiving, ledger: Ledger
) -> None:
    """As after a failover: connections to the old primary stay open, and only new ones lead to the new."""
    database = ledger.url.database
    ledger.run(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    receiving = make_receiving()
    expect_refusal(receiving, 1)
    writing = ledger.url.update_query_dict({"options": "-c default_transaction_read_only=off"})
    Ledger(writing).run(f'ALTER DATABASE "{database}" RESET default_transaction_read_only')
    wait_until(lambda: receiving.post(event("away")).status == 200)
