"""The connections of commits that follow each other: kept for a moment, never from others, and given back (D1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import event as sqlalchemy_event
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import Pool, QueuePool

from hookledger.receive.flush import Committer
from tests.integration.receive.conftest import MakeReceiving
from tests.ledger import Ledger
from tests.processes import wait_until
from tests.receiving import Receiving, event

KEPT = ("hookledger.receive.lane", "hookledger.receive.threads", "hookledger.receive.tasks")


def pool_of(receiving: Receiving) -> Pool:
    engine = receiving.engine
    return engine.sync_engine.pool if isinstance(engine, AsyncEngine) else engine.pool


def out(receiving: Receiving) -> int:
    """How many connections are out of the pool."""
    pool = pool_of(receiving)
    assert isinstance(pool, QueuePool)
    return pool.checkedout()


@pytest.fixture
def keep(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets for how long a connection is kept, in seconds."""

    def set_to(seconds: float) -> None:
        for module in KEPT[1:]:
            monkeypatch.setattr(f"{module}.KEPT", seconds)
        monkeypatch.setattr(f"{KEPT[0]}.LONGEST", seconds)

    return set_to


def test_one_request_after_the_other_goes_over_the_same_connections(
    make_receiving: MakeReceiving, keep: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(600)
    monkeypatch.setattr(Committer, "announce", lambda committer: None)
    receiving = make_receiving()
    taken: list[object] = []
    sqlalchemy_event.listen(pool_of(receiving), "checkout", lambda connection, *rest: taken.append(connection))
    for number in range(40):
        assert receiving.post(event(f"e{number}")).status == 200
    # One for each commit that may be under way, and one for the first look at the server.
    assert len(taken) <= receiving.intake.settings.commits + 1


def test_connections_are_given_back_when_nothing_comes(receiving: Receiving, ledger: Ledger) -> None:
    assert {answer.status for answer in receiving.post_all([event(f"e{number}") for number in range(50)])} == {200}
    wait_until(lambda: out(receiving) == 0)
    assert ledger.count("deliveries") == 50
    assert receiving.post(event("later")).status == 200


def test_connections_are_given_back_at_the_end(make_receiving: MakeReceiving, keep: Callable[[float], None]) -> None:
    keep(600)
    receiving = make_receiving()
    assert {answer.status for answer in receiving.post_all([event(f"e{number}") for number in range(50)])} == {200}
    receiving.start_closing().result()
    assert out(receiving) == 0


def test_a_pool_without_one_to_spare_gets_it_back_at_once(
    make_receiving: MakeReceiving, keep: Callable[[float], None]
) -> None:
    """As of an application that shares a small pool with its receiver."""
    keep(600)
    receiving = make_receiving(pool_size=1, max_overflow=0)
    assert {answer.status for answer in receiving.post_all([event(f"e{number}") for number in range(50)])} == {200}
    wait_until(lambda: out(receiving) == 0)
