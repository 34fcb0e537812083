"""Applied, stale, superseded, ignored: what becomes of deliveries, and of the states of resources (D6, D7)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection, text

from hookledger import Delivery, Inbox, Source, hmac_source, stripe
from hookledger.ledger.arrays import bound
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import NewState
from tests.integration.worker.writing import write, written
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop, shop
from tests.ways import Way

Work = Callable[..., None]


def status_of(delivery: Delivery, _: Connection) -> Any:
    return {"status": delivery.data["status"]}


def saving(way: Way, **options: Any) -> Inbox:
    """An inbox whose snapshot handler `save` keeps the status of a thing."""
    inbox = inbox_of_shop()
    inbox.snapshot(SHOP, "thing.*", name="save", **options)(way.handler(status_of))
    return inbox


def status(ledger: Ledger, resource: str = "r1") -> Any:
    state = ledger.states("save")[resource].state
    return None if state is None else state["status"]


def test_the_newest_of_a_batch_is_applied_and_the_others_are_superseded(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(*[document(f"e{number}", "r1", number, status=number) for number in (2, 3, 1)])
    work(saving(way))
    assert ledger.outcomes_of("save") == {"e3": "applied", "e2": "superseded", "e1": "superseded"}
    assert ledger.states("save")["r1"] == ((3,), False, {"status": 3})
    assert ledger.pending() == ledger.dead() == {}
    ledger.check()


def test_an_older_one_that_comes_later_is_stale(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = saving(way)
    for number in (2, 1, 3):
        ledger.record(document(f"e{number}", "r1", number, status=number))
        work(inbox)
    assert ledger.outcomes_of("save") == {"e2": "applied", "e1": "stale", "e3": "applied"}
    assert status(ledger) == 3


def test_what_no_handler_matches_is_ignored(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(document("e1", "r1", 1, type="other.updated"))
    work(saving(way))
    assert ledger.outcomes() == {("e1", "-"): "ignored"}
    # A replay comes through the same door.
    ledger.execute("INSERT INTO hookledger.pending (delivery_id) SELECT id FROM hookledger.deliveries")
    work(saving(way))
    assert ledger.outcomes() == {("e1", "-"): "ignored"}
    assert ledger.pending() == {}


def test_a_replay_of_what_is_settled_changes_nothing(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = saving(way)
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    for number in (1, 2):
        ledger.record(document(f"e{number}", "r1", number, status=number))
        work(inbox)
    before = ledger.outcomes()
    ledger.execute("INSERT INTO hookledger.pending (delivery_id) SELECT id FROM hookledger.deliveries")
    work(inbox)
    assert ledger.outcomes() == before
    assert written(ledger) == {"e1": 1, "e2": 1}
    assert status(ledger) == 2
    assert ledger.pending() == {}


def test_a_snapshot_without_a_return_value_keeps_the_state(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()

    def body(delivery: Delivery, _: Connection) -> Any:
        return {"status": "first"} if delivery.event_id == "e1" else None

    inbox.snapshot(SHOP, name="save")(way.handler(body))
    for number in (1, 2):
        ledger.record(document(f"e{number}", "r1", number))
        work(inbox)
    assert ledger.states("save")["r1"] == ((2,), False, {"status": "first"})


def test_numbers_are_added_exactly(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()

    def body(delivery: Delivery, _: Connection) -> Any:
        return {"cents": delivery.data["cents"], "rate": 0.1, "share": Decimal("0.30"), "large": 2**70}

    inbox.accumulate(SHOP, name="add")(way.handler(body))
    for batch in range(3):
        ledger.record(*[document(f"e{batch}-{number}", f"r{number % 2}", cents=number) for number in range(10)])
        work(inbox)
    states = ledger.states("add")
    assert states["r0"].state == {"cents": 60, "rate": Decimal("1.5"), "share": Decimal("4.50"), "large": 15 * 2**70}
    assert states["r1"].state == {"cents": 75, "rate": Decimal("1.5"), "share": Decimal("4.50"), "large": 15 * 2**70}
    assert ledger.states("add")["r0"].version is None


def test_what_a_handler_writes_is_there_with_its_outcome(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    ledger.record(*[document(f"e{number}") for number in range(250)])
    work(inbox, batch=30)
    assert written(ledger) == dict.fromkeys(ledger.outcomes_of("write"), 1)
    assert len(ledger.outcomes()) == 250


def test_a_handler_that_comes_later_is_given_what_is_replayed(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(document("e1", "r1", 1, type="other.updated"))
    work(saving(way))
    inbox = saving(way)
    inbox.accumulate(SHOP, "other.*", name="write")(way.handler(write))
    ledger.execute("INSERT INTO hookledger.pending (delivery_id) SELECT id FROM hookledger.deliveries")
    work(inbox)
    assert ledger.outcomes_of("write") == {"e1": "applied"}


# The cases B028 to B033 and B038 of what others have got wrong.


def test_b028_on_a_tie_the_later_arrival_wins(way: Way, work: Work, ledger: Ledger) -> None:
    first = document("o1", "r1", 1_700_000_000, status="trialing")
    second = document("o2", "r1", 1_700_000_000, status="active")
    ledger.record(first, second)
    work(saving(way))
    assert ledger.outcomes_of("save") == {"o1": "superseded", "o2": "applied"}
    assert status(ledger) == "active"


def test_b028_whichever_is_worked_on_first(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = saving(way)
    ledger.record(document("o1", "r1", 7, status="trialing"), document("o2", "r1", 7, status="active"))
    ledger.execute("UPDATE hookledger.pending SET due_at = now() + interval '1 h' WHERE delivery_id = 1")
    work(inbox)
    ledger.make_due()
    work(inbox)
    assert ledger.outcomes_of("save") == {"o1": "stale", "o2": "applied"}
    assert status(ledger) == "active"


def test_b029_an_update_before_its_create(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = saving(way)
    ledger.record(document("update", "r1", 66, status="active"))
    work(inbox)
    ledger.record(document("create", "r1", 65, status="incomplete"))
    work(inbox)
    assert ledger.outcomes_of("save") == {"update": "applied", "create": "stale"}
    assert status(ledger) == "active"
    assert ledger.failures() == []


@pytest.mark.parametrize("together", [True, False])
def test_b030_a_late_update_does_not_bring_back_what_is_deleted(
    way: Way, work: Work, ledger: Ledger, together: bool
) -> None:
    inbox = inbox_of_shop()
    seen: list[tuple[str, bool]] = []

    def body(delivery: Delivery, _: Connection) -> Any:
        seen.append((delivery.event_id, delivery.deleted))
        return {"status": delivery.event_id}

    inbox.snapshot(SHOP, name="save")(way.handler(body))
    for event in (
        document("create", "r1", 1),
        document("delete", "r1", 3, type="thing.deleted"),
        document("update", "r1", 2),
    ):
        ledger.record(event)
        if not together:
            work(inbox)
    work(inbox)
    assert ledger.states("save")["r1"] == ((3,), True, None)
    assert seen[-1] == ("delete", True)
    assert ledger.outcomes_of("save")["update"] == ("superseded" if together else "stale")
    # What is truly newer does.
    ledger.record(document("again", "r1", 4))
    work(inbox)
    assert ledger.states("save")["r1"] == ((4,), False, {"status": "again"})


def test_b031_a_version_in_the_far_future_is_refused(way: Way, work: Work, ledger: Ledger) -> None:
    source = hmac_source(
        SHOP, header="X-Sig", secrets="k-test-1", resource="resource", version="version", version_unit="seconds"
    )
    inbox = Inbox(source)
    inbox.snapshot(SHOP, name="save")(way.handler(status_of))
    now = int(ledger.now().timestamp())
    far = document("far", "r1", "2099-01-01T00:00:00Z", status="far")
    near = [document(f"e{number}", "r1", now + number, status=number) for number in range(3)]
    skewed = document("skewed", "r1", now + 2 + 2, status="skewed")
    for event in (far, *near, skewed):
        ledger.record(event, source=source)
        work(inbox)
    assert ledger.outcomes_of("save") == dict.fromkeys(("e0", "e1", "e2", "skewed"), "applied")
    dead = ledger.dead()["far"]
    assert dead.reason == "rejected"
    assert "2099-01-01" in dead.error
    assert "future_tolerance" in dead.error
    assert status(ledger) == "skewed"


def test_b032_times_with_and_without_a_zone_compare(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = saving(way)
    for number, moment in enumerate(
        ("2025-04-30T10:00:00", "2025-04-30T10:00:05+00:00", "2025-04-30T12:00:06+02:00", 1_746_007_207)
    ):
        ledger.record(document(f"e{number}", "r1", moment, status=number))
        work(inbox)
        assert status(ledger) == number
    assert set(ledger.outcomes_of("save").values()) == {"applied"}


def test_b033_versions_are_compared_as_numbers(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = saving(way)
    for number, version in enumerate(("9", "10", "9")):
        ledger.record(document(f"e{number}", "r1", version, status=version))
        work(inbox)
    assert status(ledger) == "10"
    assert ledger.outcomes_of("save") == {"e0": "applied", "e1": "applied", "e2": "stale"}
    ledger.record(document("e3", "r2", "999", status="999"), document("e4", "r2", "1000", status="1000"))
    work(inbox)
    assert status(ledger, "r2") == "1000"


def test_b032_a_version_that_cannot_be_compared_is_a_failure_and_never_stale(
    way: Way, work: Work, ledger: Ledger
) -> None:
    versions: dict[str, Any] = {
        "text": "soon",
        "none": None,
        "pair": [1, 2],
        "mapping": {"a": 1},
        "truth": True,
        "empty": [],
    }
    inbox = saving(way)
    ledger.record(document("e1", "r1", 5, status=5))
    work(inbox)
    ledger.record(*[document(event, "r1", version, status=event) for event, version in versions.items()])
    work(inbox)
    failed = {failure.event_id: failure.error for failure in ledger.failures()}
    assert set(failed) == set(versions)
    assert all("version" in error for error in failed.values())
    assert {row.attempts for row in ledger.pending().values()} == {1}
    assert ledger.outcomes_of("save") == {"e1": "applied"}
    assert status(ledger) == 5


def test_a_version_of_the_handlers_own(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = saving(
        way,
        resource=lambda delivery: delivery.data["about"],
        version=lambda delivery: (delivery.data["epoch"], delivery.data["sequence"]),
        deleted=lambda delivery: delivery.data.get("gone", False),
    )
    for number, (epoch, sequence) in enumerate(((1, 9), (2, 1), (1, 10))):
        ledger.record(document(f"e{number}", about="a1", epoch=epoch, sequence=sequence, status=number))
        work(inbox)
    assert ledger.states("save") == {"a1": ((2, 1), False, {"status": 1})}
    ledger.record(document("end", about="a1", epoch=2, sequence=2, status="end", gone=True))
    work(inbox)
    assert ledger.states("save") == {"a1": ((2, 2), True, None)}


def test_a_delivery_without_a_resource_fails_with_what_to_do(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(document("e1", None, 1, status=1))
    work(saving(way))
    (failure,) = ledger.failures()
    assert "resource=" in failure.error


def test_b038_a_retry_far_ahead_holds_up_nothing(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = saving(way)
    ledger.record(document("e1", "r1", 1, status=1), document("e2", "r1", 2, status=2))
    ledger.execute("UPDATE hookledger.pending SET due_at = now() + interval '1 h' WHERE delivery_id = 1")
    work(inbox)
    assert ledger.outcomes_of("save") == {"e2": "applied"}
    ledger.make_due()
    work(inbox)
    assert ledger.outcomes_of("save") == {"e1": "stale", "e2": "applied"}
    assert status(ledger) == 2


def test_when_the_newest_fails_the_next_newest_runs_and_the_newest_comes_on_top(
    way: Way, work: Work, ledger: Ledger
) -> None:
    inbox = inbox_of_shop()
    broken = {"e3"}

    def body(delivery: Delivery, _: Connection) -> Any:
        if delivery.event_id in broken:
            raise RuntimeError("not now")
        return {"status": delivery.event_id}

    inbox.snapshot(SHOP, name="save")(way.handler(body))
    ledger.record(*[document(f"e{number}", "r1", number) for number in (1, 2, 3)])
    work(inbox)
    assert ledger.outcomes_of("save") == {"e2": "applied", "e1": "superseded"}
    assert status(ledger) == "e2"
    assert ledger.pending()["e3"].attempts == 1
    broken.clear()
    ledger.make_due()
    work(inbox)
    assert ledger.outcomes_of("save")["e3"] == "applied"
    assert status(ledger) == "e3"


def test_handlers_and_sources_do_not_share_states(way: Way, work: Work, ledger: Ledger) -> None:
    other: Source = shop("other")
    inbox = Inbox(shop(), other)
    inbox.snapshot(SHOP, name="save")(way.handler(status_of))
    inbox.snapshot(SHOP, name="keep")(way.handler(status_of))
    inbox.snapshot("other", name="other")(way.handler(status_of))
    ledger.record(document("e1", "r1", 5, status="shop"))
    ledger.record(document("e1", "r1", 1, status="other"), source=other)
    work(inbox)
    rows = ledger.execute("SELECT handler, source, state->>'status' FROM hookledger.resource_state ORDER BY 1")
    assert [tuple(row) for row in rows] == [("keep", SHOP, SHOP), ("other", "other", "other"), ("save", SHOP, SHOP)]


def test_events_of_stripe_are_ordered_by_their_time(way: Way, work: Work, ledger: Ledger) -> None:
    source = stripe(secrets="whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3")
    inbox = Inbox(source)
    inbox.snapshot("stripe", "customer.*", name="save")(
        way.handler(lambda delivery, _: {"name": delivery.data["data"]["object"]["name"]})
    )
    for id, created, name in (("evt_1", 1_700_000_000, "old"), ("evt_2", 1_700_000_005, "new"), ("evt_3", 1, "oldest")):
        event = {
            "id": id,
            "type": "customer.updated",
            "created": created,
            "data": {"object": {"id": "c", "name": name}},
        }
        ledger.record(event, source=source)
        work(inbox)
    assert ledger.states("save")["c"].state == {"name": "new"}


def test_odd_text_in_a_state_is_stored(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    inbox.snapshot(SHOP, name="save")(way.handler(lambda *_: {"a\x00\ud83d": ["\x00", "\ud83d", "☕"], "n": 10**400}))
    ledger.record(document("e1", "r1", 1))
    work(inbox)
    assert ledger.states("save")["r1"].state == {"a\ufffd\ufffd": ["\ufffd", "\ufffd", "☕"], "n": 10**400}


def test_an_odd_resource_and_event_are_worked_on(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(
        document("e\x00\ud83d", "r\x00\ud83d", 1, status=1),
        document("e" * 5000, "r" * 5000, 1, status=2),
        document(f"{'e' * 5000}!", f"{'r' * 5000}!", 1, status=3),
    )
    work(saving(way))
    assert sorted(state.state["status"] for state in ledger.states("save").values()) == [1, 2, 3]
    ledger.check()


def test_a_handler_that_writes_to_the_row_of_its_state_does_not_lose_the_watermark(
    way: Way, work: Work, ledger: Ledger
) -> None:
    """The row is moved by that, and so is not where it was locked."""

    def touch(delivery: Delivery, tx: Connection) -> Any:
        tx.execute(text("UPDATE hookledger.resource_state SET deleted = deleted"))
        return status_of(delivery, tx)

    inbox = inbox_of_shop()
    inbox.snapshot(SHOP, name="save")(way.handler(touch))
    ledger.record(*[document(f"e{number}", f"r{number}", number, status=number) for number in (1, 2, 3)])
    work(inbox)
    assert ledger.states("save") == {f"r{number}": ((number,), False, {"status": number}) for number in (1, 2, 3)}
    ledger.check()


PAGES = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "


def test_b043_an_old_transaction_makes_states_no_slower_to_find(ledger: Ledger) -> None:
    """Each move of a watermark leaves a row behind while it keeps vacuum away. The newest is found first, wherever the
    planner would begin."""
    repository = Repository.of("hookledger")
    keys = [("save", SHOP, f"r{number}") for number in range(20)]
    parameters = bound("state", ("handler", "source", "resource"), keys)
    found: list[int] = []
    with ledger.engine.begin() as connection:
        repository.insert_states(connection, keys)
    with ledger.engine.connect().execution_options(isolation_level="REPEATABLE READ") as old:
        old.execute(text("SELECT FROM hookledger.pending"))
        for version in range(1, 201):
            with ledger.engine.begin() as connection:
                locked = repository.lock_states(connection, keys)
                new = [
                    NewState(*key, f"{{{version}}}", version, False, False, None, locked.places[key]) for key in keys
                ]
                repository.save_states(connection, new)
            with ledger.engine.begin() as connection:
                (top,) = connection.exec_driver_sql(PAGES + repository.sql.lock_states, parameters).scalar_one()
                found.append(top["Plan"]["Shared Hit Blocks"] + top["Plan"]["Shared Read Blocks"])
            assert {mark.version for mark in locked.watermarks.values()} == {None if version == 1 else (version - 1,)}
        by_equality = (
            "SELECT FROM hookledger.resource_state WHERE handler = 'save' AND source = 'shop' AND resource = 'r7'"
        )
        with ledger.engine.begin() as connection:
            (top,) = connection.exec_driver_sql(PAGES + by_equality).scalar_one()
    assert found[-1] < 3 * found[0]
    assert top["Plan"]["Shared Hit Blocks"] > 3 * found[-1] / len(keys), "vacuum was kept away, so this test can fail"
