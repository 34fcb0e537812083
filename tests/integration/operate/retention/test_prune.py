"""Pruning takes what is settled and old, and nothing else."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy import text

from hookledger import SetupError
from hookledger.operate.retention import Retention
from hookledger.operate.retention import prune as pruning
from hookledger.operate.retention.brief import Patience, Stopped
from hookledger.operate.retention.prune import plan_prune, prune
from tests.aged import bury, holds, make_old_partition, make_older, partitions_of, settle
from tests.outcomes import Ledger, document, inbox_of_shop
from tests.ways import WAYS

DAY = timedelta(days=1)
MONTH = Retention(payloads=30 * DAY)
SHORT = Patience(lock=0.05, tries=2, pause=0.01)


def names(ledger: Ledger) -> list[str]:
    return [each.name for each in partitions_of(ledger)]


def test_a_partition_goes_with_all_it_holds_once_it_is_over_the_horizon(ledger: Ledger) -> None:
    old, young = make_old_partition(ledger, 50), make_old_partition(ledger, 20)
    ledger.record(document("old"), document("young"))
    make_older(ledger, 50, "old")
    make_older(ledger, 20, "young")
    settle(ledger, "old", "young")

    pruned = prune(ledger.engine, "hookledger", MONTH)

    assert [drop.partition.name for drop in pruned.drops] == [old]
    assert pruned.is_whole
    assert names(ledger) == [young, "payloads_default"]
    assert ledger.value("SELECT count(*) FROM hookledger.deliveries") == 2
    assert ledger.value("SELECT count(*) FROM hookledger.effects") == 2


@pytest.mark.parametrize("left", ["pending", "dead"])
def test_the_payload_of_an_unsettled_delivery_is_moved_before_its_partition_goes(ledger: Ledger, left: str) -> None:
    old = make_old_partition(ledger, 50)
    ledger.record(document("needed", note="x"), document("done"))
    make_older(ledger, 50, "needed", "done")
    settle(ledger, "done")
    if left == "dead":
        bury(ledger, "needed")

    pruned = prune(ledger.engine, "hookledger", MONTH)

    assert (pruned.moved, old in names(ledger)) == (1, False)
    assert holds(ledger, "payloads_default") == ["needed"]
    ledger.execute("INSERT INTO hookledger.pending (delivery_id) SELECT 1 WHERE :dead", dead=left == "dead")
    seen: list[object] = []
    inbox = inbox_of_shop()
    inbox.accumulate("shop", name="see")(lambda delivery, tx: seen.append(delivery.data["note"]))
    WAYS[0].work(str(ledger.engine.url.render_as_string(hide_password=False)), inbox)
    assert seen == ["x"]


def test_a_moved_payload_goes_once_its_delivery_is_settled(ledger: Ledger) -> None:
    make_old_partition(ledger, 50)
    ledger.record(document("needed"))
    make_older(ledger, 50, "needed")
    prune(ledger.engine, "hookledger", MONTH)
    again = prune(ledger.engine, "hookledger", MONTH)
    settle(ledger, "needed")

    pruned = prune(ledger.engine, "hookledger", MONTH)

    assert again.counts["payloads"] == 0
    assert pruned.counts["payloads"] == 1
    assert ledger.value("SELECT count(*) FROM hookledger.payloads") == 0


def test_a_partition_stays_that_holds_more_of_unsettled_ones_than_can_be_moved(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "MOST_MOVED", 2)
    old = make_old_partition(ledger, 50)
    ids = [f"e{number}" for number in range(3)]
    ledger.record(*[document(id) for id in ids])
    make_older(ledger, 50, *ids)

    pruned = prune(ledger.engine, "hookledger", MONTH)

    assert pruned.drops[0].kept == "more than 2 of its payloads are of deliveries that are not settled"
    assert not pruned.is_whole
    assert holds(ledger, old) == ids


def test_old_payloads_of_the_default_partition_go_row_by_row(ledger: Ledger) -> None:
    ledger.record(*[document(f"e{number}") for number in range(5)])
    make_older(ledger, 40, "e0", "e1", "e2", "e3")
    settle(ledger, "e0", "e1", "e2", "e4")

    planned = plan_prune(ledger.engine, "hookledger", MONTH)
    pruned = prune(ledger.engine, "hookledger", MONTH)

    assert planned.counts == pruned.counts == {"payloads": 3}
    assert holds(ledger, "payloads_default") == ["e3", "e4"]


def test_a_plan_changes_nothing(ledger: Ledger) -> None:
    old = make_old_partition(ledger, 50)
    ledger.record(document("old"), document("needed"))
    make_older(ledger, 50, "old", "needed")
    settle(ledger, "old")

    planned = plan_prune(ledger.engine, "hookledger", MONTH)

    assert [(drop.partition.name, drop.unsettled) for drop in planned.drops] == [(old, 1)]
    assert holds(ledger, old) == ["old", "needed"]


def test_deliveries_go_with_what_is_theirs_and_a_copy_is_still_not_applied_twice(ledger: Ledger) -> None:
    ledger.record(document("gone"), document("dead"), document("young"))
    columns = "delivery_id, attempt, handler, error, fingerprint"
    ledger.execute(f"INSERT INTO hookledger.failures ({columns}) VALUES (1, 1, 'h', 'e', 'f')")
    settle(ledger, "gone", "young")
    bury(ledger, "dead")
    make_older(ledger, 200, "gone", "dead")

    pruned = prune(ledger.engine, "hookledger", Retention(payloads=30 * DAY, deliveries=180 * DAY))

    assert pruned.counts["deliveries"] == 1
    left = [row.event_id for row in ledger.execute("SELECT event_id FROM hookledger.deliveries ORDER BY id")]
    assert left == ["dead", "young"]
    assert ledger.value("SELECT count(*) FROM hookledger.failures") == 0
    ledger.execute("CREATE TABLE written (id bigint)")
    inbox = inbox_of_shop()
    write = text("INSERT INTO written VALUES (:id)")
    inbox.accumulate("shop", name="handler")(lambda delivery, tx: tx.execute(write, {"id": delivery.id}) and None)
    ledger.record(document("gone"))
    WAYS[0].work(str(ledger.engine.url.render_as_string(hide_password=False)), inbox)
    assert ledger.pending() == {}
    assert ledger.value("SELECT count(*) FROM written") == 0


def test_effects_go_after_their_deliveries(ledger: Ledger) -> None:
    ledger.record(document("gone"), document("half"), document("young"))
    settle(ledger, "gone", "half", "young")
    make_older(ledger, 400, "gone")
    make_older(ledger, 200, "half")

    prune(
        ledger.engine,
        "hookledger",
        Retention(payloads=30 * DAY, deliveries=180 * DAY, effects=365 * DAY),
    )

    assert sorted(event for event, _ in ledger.outcomes()) == ["half", "young"]


def test_an_imported_delivery_counts_from_its_import(ledger: Ledger) -> None:
    ledger.record(document("new"), document("imported"), document("newest"))
    settle(ledger, "new", "imported", "newest")
    make_older(ledger, 200, "imported")
    ledger.execute("INSERT INTO hookledger.imported (delivery_id, origin) VALUES (2, 'file')")

    prune(ledger.engine, "hookledger", Retention(payloads=30 * DAY, deliveries=180 * DAY))

    assert ledger.value("SELECT count(*) FROM hookledger.deliveries") == 3


def test_two_at_a_time_do_not_meet(ledger: Ledger) -> None:
    ledger.record(*[document(f"e{number}") for number in range(3000)])
    ids = [f"e{number}" for number in range(3000)]
    settle(ledger, *ids)
    make_older(ledger, 200, *ids)
    results: list[pruning.Pruned] = []
    kept = Retention(payloads=30 * DAY, deliveries=180 * DAY)

    threads = [
        threading.Thread(target=lambda: results.append(prune(ledger.engine, "hookledger", kept))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    prune(ledger.engine, "hookledger", kept)

    assert len(results) == 3
    assert ledger.value("SELECT count(*) FROM hookledger.deliveries") == 0


def test_it_waits_for_nobody_and_tells_so(ledger: Ledger) -> None:
    old = make_old_partition(ledger, 50)
    with ledger.transaction() as reader:
        reader.execute(text("SELECT count(*) FROM hookledger.payloads"))
        pruned = prune(ledger.engine, "hookledger", MONTH, patience=SHORT)

    assert "try again later" in (pruned.drops[0].kept or "")
    assert old in names(ledger)


def test_it_can_be_stopped_between_two_steps(ledger: Ledger) -> None:
    ids = [f"e{number}" for number in range(2500)]
    ledger.record(*[document(id) for id in ids])
    settle(ledger, *ids)
    make_older(ledger, 40, *ids)
    done: list[int] = []
    patience = Patience(stopping=lambda: len(done) >= 1)

    with pytest.raises(Stopped):
        prune(ledger.engine, "hookledger", MONTH, patience=patience, progress=lambda what, count: done.append(count))

    assert ledger.value("SELECT count(*) FROM hookledger.payloads") == 1500


def test_old_requests_in_quarantine_go(ledger: Ledger) -> None:
    ledger.execute(
        "INSERT INTO hookledger.quarantine (at, source, status, reason, method, url, headers, body, size)"
        " SELECT now() - days * interval '1 day', 'shop', 401, 'no-match', 'POST', '', '[]', '', 0"
        " FROM unnest(ARRAY[1, 5, 9]) AS days"
    )

    pruned = prune(ledger.engine, "hookledger", Retention(quarantine=7 * DAY))

    assert pruned.counts == {"quarantine": 1}
    assert ledger.value("SELECT count(*) FROM hookledger.quarantine") == 2


@pytest.mark.parametrize(
    "horizons",
    [
        {"payloads": 30 * DAY, "deliveries": 20 * DAY},
        {"deliveries": 20 * DAY},
        {"payloads": DAY, "deliveries": 30 * DAY, "effects": 20 * DAY},
        {"payloads": DAY, "effects": 20 * DAY},
        {"payloads": timedelta(0)},
    ],
)
def test_horizons_that_contradict_each_other_are_refused(horizons: dict[str, timedelta]) -> None:
    with pytest.raises(SetupError):
        Retention(**horizons)


def test_a_horizon_within_a_senders_own_time_of_sending_again_needs_force() -> None:
    times = {"stripe": 3 * DAY, "shopify": 4 * timedelta(hours=1)}

    with pytest.raises(SetupError, match="the source 'stripe' may send an event again for 3 days"):
        Retention(payloads=2 * DAY).require(times)

    Retention(payloads=2 * DAY, force=True).require(times)
    Retention(payloads=3 * DAY).require(times)
    Retention(payloads=DAY).require({"shopify": timedelta(hours=4)})


def test_the_effects_of_an_event_that_came_again_stay_as_long_as_its_new_delivery(ledger: Ledger) -> None:
    """Else a replay of that would apply it a second time."""
    ledger.record(document("e1"))
    settle(ledger, "e1")
    make_older(ledger, 100, "e1")
    ledger.execute("DELETE FROM hookledger.deliveries")
    ledger.record(document("e1"))
    ledger.execute("DELETE FROM hookledger.pending")

    prune(ledger.engine, "hookledger", Retention(payloads=30 * DAY, deliveries=30 * DAY, effects=60 * DAY))

    assert ledger.value("SELECT count(*) FROM hookledger.effects") == 1
