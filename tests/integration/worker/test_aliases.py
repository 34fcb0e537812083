"""A handler that had another name before: the ledger knows what it did under that one (B056)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection

from hookledger import Delivery, Inbox, SetupError
from tests.integration.worker.writing import write, written
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop
from tests.ways import Way

Work = Callable[..., None]


def state_of(delivery: Delivery, tx: Connection) -> Any:
    write(delivery, tx, "save")
    return {"status": delivery.data["status"]}


def count(delivery: Delivery, tx: Connection) -> Any:
    write(delivery, tx, "count")
    return {"events": 1}


def inbox_of(way: Way, prefix: str, *former: str) -> Inbox:
    """Two handlers whose names begin with the prefix, and before began with others."""
    inbox = inbox_of_shop()
    for kind, function in (("save", state_of), ("count", count)):
        register = inbox.snapshot if kind == "save" else inbox.accumulate
        aliases = [f"{name}.{kind}" for name in former]
        register(SHOP, "thing.*", name=f"{prefix}.{kind}", aliases=aliases)(way.handler(function))
    return inbox


def make_all_pending(ledger: Ledger) -> None:
    ledger.execute("INSERT INTO hookledger.pending (delivery_id, revisited) SELECT id, true FROM hookledger.deliveries")


def test_b056_what_was_done_under_the_former_name_is_not_done_again(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(document("e1", "r1", 5, status=5))
    work(inbox_of(way, "billing"))
    make_all_pending(ledger)
    work(inbox_of(way, "payments", "billing"))
    assert written(ledger, "save") == written(ledger, "count") == {"e1": 1}
    assert ledger.outcomes() == {("e1", "billing.save"): "applied", ("e1", "billing.count"): "applied"}
    ledger.check()


def test_b056_what_comes_again_after_it_was_pruned_is_known_under_the_former_name(
    way: Way, work: Work, ledger: Ledger
) -> None:
    ledger.record(document("e1", "r1", 5, status=5))
    work(inbox_of(way, "billing"))
    ledger.execute("DELETE FROM hookledger.deliveries")
    ledger.record(document("e1", "r1", 5, status=5))
    work(inbox_of(way, "payments", "billing"))
    assert written(ledger, "save") == written(ledger, "count") == {"e1": 1}
    assert ledger.pending() == ledger.dead() == {}


def test_b056_the_watermark_of_the_former_name_holds(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(document("old", "r1", 4, status=4), document("e1", "r1", 5, status=5))
    ledger.execute("DELETE FROM hookledger.pending WHERE delivery_id = 1")
    work(inbox_of(way, "billing"))
    ledger.execute("INSERT INTO hookledger.pending (delivery_id) VALUES (1)")
    work(inbox_of(way, "payments", "billing"))
    assert ledger.outcomes()["old", "payments.save"] == "stale"
    ledger.record(document("e2", "r1", 6, status=6))
    work(inbox_of(way, "payments", "billing"))
    # Rolled back, with the new name as an alias: nothing moves back, nothing is done twice.
    ledger.record(document("late", "r1", 5, status=0))
    make_all_pending_again(ledger)
    work(inbox_of(way, "billing", "payments"))
    assert ledger.outcomes()["late", "billing.save"] == "stale"
    assert written(ledger, "save") == {"e1": 1, "e2": 1}
    assert written(ledger, "count") == dict.fromkeys(["e1", "e2", "late", "old"], 1)


def make_all_pending_again(ledger: Ledger) -> None:
    ledger.execute(
        "INSERT INTO hookledger.pending (delivery_id, revisited) SELECT id, true FROM hookledger.deliveries"
        " ON CONFLICT DO NOTHING"
    )


@pytest.mark.parametrize(
    ("earlier", "name", "aliases", "words"),
    [
        ({}, "a", ["a"], "cannot be an alias"),
        ({}, "a", [""], "cannot be an alias"),
        ({}, "a", ["-"], "cannot be an alias"),
        ({"a": []}, "b", ["a"], "cannot both have had"),
        ({"a": ["x"]}, "b", ["x"], "cannot both have had"),
        ({"a": ["b"]}, "b", [], "which is another one's name"),
    ],
)
def test_an_alias_belongs_to_one_handler(
    earlier: dict[str, list[str]], name: str, aliases: list[str], words: str
) -> None:
    inbox = inbox_of_shop()
    for other, others in earlier.items():
        inbox.accumulate(SHOP, name=other, aliases=others)(lambda delivery, tx: None)
    register = inbox.accumulate(SHOP, name=name, aliases=aliases)
    with pytest.raises(SetupError, match=words):
        register(lambda delivery, tx: None)
