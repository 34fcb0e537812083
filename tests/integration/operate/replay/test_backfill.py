"""A new handler over old deliveries (D11)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from hookledger import Delivery, Inbox, SetupError
from hookledger.cli.ended import advice, status_of_ended
from hookledger.operate.backfill import backfill
from hookledger.operate.filters import Filter, State
from hookledger.operate.replay import Kind
from tests.outcomes import SHOP, document
from tests.replaying import Shop


def with_new_handlers(shop: Shop, seen: list[str]) -> Inbox:
    """The shop's inbox, and two handlers that came later."""
    inbox = shop.make_inbox()

    @inbox.accumulate(SHOP, "fact.*", "other.added", name="count")
    def count(delivery: Delivery, tx: Connection) -> dict[str, int]:
        seen.append(delivery.event_id)
        return {"events": 1}

    @inbox.snapshot(SHOP, "thing.*", name="copy")
    def copy(delivery: Delivery, tx: Connection) -> dict[str, Any]:
        seen.append(delivery.event_id)
        return {"is": delivery.data["version"]}

    return inbox


def test_only_the_new_handler_runs_and_only_where_it_has_not(shop: Shop) -> None:
    shop.facts("e1", "e2")
    shop.record(document("other", "r", type="other.added"), document("nobody", "r", type="another.added"))
    shop.facts("dead", fails=True)
    shop.work()
    seen: list[str] = []
    inbox = with_new_handlers(shop, seen)
    shop.facts("e3")
    shop.work(inbox)
    assert seen == ["e3"]
    shop.facts("pending")
    selection = backfill(inbox, "count")
    plan = shop.plan(selection, inbox=inbox)
    assert (plan.settled, plan.run, plan.dead, plan.left_pending) == (3, 3, 0, 1)
    replay = shop.replay(selection)
    assert (replay.kind, replay.queued) == (Kind.BACKFILL, 3)
    shop.work(inbox)
    assert sorted(seen) == ["e1", "e2", "e3", "other", "pending"]
    assert (shop.total(), shop.mails()) == (20, 4)
    assert set(shop.dead()) == {"dead"}
    assert shop.plan(selection, inbox=inbox).total == 0
    shop.check()


def test_the_end_says_when_the_workers_do_not_know_the_handler(shop: Shop) -> None:
    shop.facts("e1", "e2")
    shop.work()
    selection = backfill(with_new_handlers(shop, []), "count")
    with shop.working():
        ended = shop.run(shop.begin(selection), patience=60.0)
    assert (ended.queued, ended.result["missed"]) == (2, 2)
    assert "do not know the handler yet" in (advice(ended) or "")
    assert status_of_ended(ended, interrupted=False) == 1


def test_a_new_snapshot_handler_ends_with_the_newest(shop: Shop) -> None:
    for version in (2, 3, 1):
        shop.thing(f"v{version}", version)
        shop.work()
    inbox = with_new_handlers(shop, [])
    shop.replay(backfill(inbox, "copy"))
    shop.work(inbox)
    assert shop.states("copy")["t"].state == {"is": 3}
    assert shop.outcomes_of("copy")["v3"] == "applied"


def test_since_when_is_a_filter(shop: Shop) -> None:
    shop.facts("e1")
    shop.work()
    inbox = with_new_handlers(shop, [])
    after = Filter(received_since=shop.now() + timedelta(seconds=1))
    assert shop.plan(backfill(inbox, "count", after), inbox=inbox).total == 0
    before = Filter(received_since=shop.now() - timedelta(days=1))
    assert shop.plan(backfill(inbox, "count", before), inbox=inbox).total == 1


def test_what_could_not_work_is_refused(shop: Shop) -> None:
    with pytest.raises(SetupError, match=r"has no handler 'nobody'; it has: add, save"):
        backfill(shop.inbox, "nobody")
    with pytest.raises(SetupError, match="dead ones are replayed"):
        backfill(shop.inbox, "add", Filter(state=State.DEAD))
