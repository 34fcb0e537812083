"""What is told to happen in a sequence does happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, text

from hookledger import Delivery, Inbox
from hookledger.testing import LedgerDatabase
from hookledger.testing.given import read_given
from hookledger.testing.plan import Plan, Then
from hookledger.testing.stage import Ended, Stage
from tests.testing import shop
from tests.testing.shop import SHOP

Play = Callable[..., tuple[Ended, list[str]]]


@pytest.fixture(params=["sync", "async"])
def play(request: pytest.FixtureRequest, hookledger_database: LedgerDatabase) -> Iterator[Play]:
    """Plays steps over the facts; gives how it ended, and which handlers ran."""
    inbox: Inbox = shop.inbox()
    ran: list[str] = []

    def add(delivery: Delivery, tx: Connection) -> None:
        ran.append(delivery.event_id)
        shop.add(delivery, tx)
        tx.execute(text("SELECT 1"))

    inbox.accumulate(SHOP, "added", name="add")(shop.asynchronous(add) if request.param == "async" else add)
    given = read_given(inbox, shop.FACTS)

    def state(connection: Connection) -> Any:
        count = connection.execute(text("SELECT sum(attempts) FROM hookledger.pending")).scalar()
        assert count is None
        return dict(connection.execute(text("SELECT resource, total FROM sums WHERE resource <> 'all'")).all())

    with Stage(hookledger_database, inbox, given, state, ran.clear) as stage:

        def run(*steps: tuple[int, Then]) -> tuple[Ended, list[str]]:
            return stage.play(Plan(steps)), list(ran)

        yield run


def test_a_death_takes_back_what_was_not_committed(play: Play) -> None:
    ended, ran = play((0, Then.NEXT), (1, Then.CLAIMED))
    assert (ended.state, ran) == ({"r": 110}, ["e1", "e2"])
    assert ended.seen[0] == ("worker 1: dies",)
    ended, ran = play((0, Then.NEXT), (1, Then.WORKED))
    assert (ended.state, ran) == ({"r": 110}, ["e1", "e2", "e1", "e2"])
    assert ended.seen[0][-2:] == ("worker 1: SELECT 1", "worker 1: dies")
    ended, ran = play((0, Then.NEXT), (1, Then.COMMITTED))
    assert (ended.state, ran) == ({"r": 110}, ["e1", "e2"])
    assert ended.seen[0][-2:] == ("worker 1: COMMIT", "worker 1: dies")


def test_a_delivery_may_have_two_deaths(play: Play) -> None:
    ended, ran = play((0, Then.WORKED), (1, Then.WORKED), (1, Then.WORKED))
    assert ended.state == {"r": 110}
    assert ended.dead == {}
    # What was taken back ran again.
    assert len(ran) >= 5


def test_workers_take_turns(play: Play) -> None:
    ended, ran = play((0, Then.NEXT), (2, Then.IN_STEP))
    assert (ended.state, ran) == ({"r": 10, "s": 1000}, ["e1", "e3"])
    assert [line.partition(" (")[0] for line in ended.seen[0]] == [
        "worker 1: INSERT INTO sums VALUES",
        "worker 2: INSERT INTO sums VALUES",
        "worker 1: SELECT 1",
        "worker 2: SELECT 1",
        "worker 1: COMMIT",
        "worker 2: COMMIT",
    ]


def test_the_first_waits_for_the_second(play: Play) -> None:
    ended, _ = play((0, Then.NEXT), (2, Then.BEFORE_SECOND))
    assert [line.partition(" (")[0] for line in ended.seen[0]] == [
        "worker 1: INSERT INTO sums VALUES",
        "worker 2: INSERT INTO sums VALUES",
        "worker 2: SELECT 1",
        "worker 2: COMMIT",
        "worker 1: SELECT 1",
        "worker 1: COMMIT",
    ]


def test_who_is_blocked_does_not_block_the_other(play: Play) -> None:
    ended, ran = play((0, Then.NEXT), (1, Then.IN_STEP))
    assert (ended.state, ran) == ({"r": 110}, ["e1", "e2"])
    assert [line[:16] for line in ended.seen[0][:2]] == ["worker 1: INSERT", "worker 2: INSERT"]
    assert ended.seen[0].index("worker 1: COMMIT") < ended.seen[0].index("worker 2: SELECT 1")
