"""Our own handlers converge, whatever their kind, and each kind of mistake is found."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, text

from hookledger import Delivery, Inbox, Reject, Retry, SetupError
from hookledger.testing import LedgerDatabase, signed, stage
from tests.testing import shop
from tests.testing.shop import SHOP, STATE, event

Check = Callable[..., None]

EXAMPLES = 10
KINDS = {
    "connection": (shop.save, shop.add),
    "session": (shop.session_save, shop.session_add),
    "async-connection": (shop.asynchronous(shop.save), shop.asynchronous(shop.add)),
    "async-session": (shop.asynchronous_session(shop.session_save), shop.asynchronous_session(shop.session_add)),
}
LOSING = {
    "connection": shop.read_and_write_back,
    "async-session": shop.asynchronous_session(shop.session_read_and_write_back),
    "both": shop.read_and_write_back,
}


def found(check: Check, inbox: Inbox, deliveries: Sequence[Any], state: Any = STATE, **options: Any) -> str:
    """What is told of a mistake."""
    with pytest.raises(AssertionError) as raised:
        check(inbox, deliveries, state, **options)
    return str(raised.value)


def steps(told: str) -> list[str]:
    """The numbered lines of the smallest sequence."""
    return re.findall(r"^ +\d+\. (.*)$", told, re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_right_handlers_converge(assert_converges: Check, kind: str) -> None:
    inbox = shop.inbox()
    save, add = KINDS[kind]
    inbox.snapshot(SHOP, "saved*", name="save")(save)
    inbox.accumulate(SHOP, "*", name="add")(add)
    assert_converges(inbox, shop.EVERYTHING, STATE, examples=EXAMPLES)


@pytest.mark.parametrize("kind", LOSING)
def test_reading_and_writing_back_is_found(assert_converges: Check, kind: str) -> None:
    inbox = shop.inbox()
    inbox.accumulate(SHOP, "added", name="add")(LOSING[kind])
    if kind == "both":
        inbox.snapshot(SHOP, "saved*", name="save")(shop.asynchronous(shop.save))
    told = found(assert_converges, inbox, shop.FACTS)
    first, second, then = steps(told)
    assert first == "A comes"
    assert second == "B comes"
    assert then.startswith("two workers run at the same time")
    assert "worker 1: SELECT" in told
    assert "worker 2: UPDATE sums SET total" in told
    assert "[('all', 110)]" in told
    assert "SELECT ... FOR UPDATE" in told


def test_locking_before_writing_back_converges(assert_converges: Check) -> None:
    inbox = shop.inbox()
    inbox.accumulate(SHOP, "added")(shop.lock_and_write_back)
    assert_converges(inbox, shop.FACTS, STATE, examples=EXAMPLES)


def test_a_snapshot_that_is_registered_as_a_fact_is_found(assert_converges: Check) -> None:
    inbox = shop.inbox()
    inbox.accumulate(SHOP, "saved*")(shop.save)
    told = found(assert_converges, inbox, shop.SNAPSHOTS)
    assert steps(told)[:2] == ["B comes", "A comes"]
    assert len(steps(told)) == 3
    assert "@inbox.snapshot" in told


def test_a_snapshot_handler_that_counts_is_found(assert_converges: Check) -> None:
    inbox = shop.inbox()
    inbox.snapshot(SHOP, "saved*")(shop.add)
    assert len(set(steps(found(assert_converges, inbox, shop.SNAPSHOTS)))) == 3


def test_what_a_handler_keeps_outside_the_transaction_is_found(assert_converges: Check) -> None:
    inbox, outside = shop.inbox(), []

    @inbox.accumulate(SHOP, "added")
    def note(delivery: Delivery, tx: Connection) -> None:
        outside.append(delivery.event_id)

    def state(_: Connection) -> list[str]:
        return sorted(outside)

    told = found(assert_converges, inbox, shop.FACTS, state, reset=outside.clear)
    assert steps(told) == [
        "A comes",
        "a worker dies after its handlers have run, before their commit: PostgreSQL takes their writes back",
        "another worker takes over",
    ]
    assert "['e1', 'e1']" in told
    assert "idempotency_key" in told
    assert "end in another state when that is done again" in found(assert_converges, inbox, shop.FACTS, state)


def test_going_by_the_time_of_arrival_is_found(assert_converges: Check) -> None:
    late = shop.inbox()
    late.snapshot(SHOP, "saved*", version=lambda delivery: delivery.received_at)(shop.save)
    assert steps(found(assert_converges, late, shop.SNAPSHOTS))[:2] == ["B comes", "A comes"]


def test_writing_the_day_of_arrival_is_found(assert_converges: Check) -> None:
    daily = shop.inbox()

    @daily.accumulate(SHOP, "added")
    def add_to_day(delivery: Delivery, tx: Connection) -> None:
        tx.execute(text("INSERT INTO sums VALUES (:day, 1)"), {"day": f"{delivery.received_at:%Y-%m-%d}"})

    told = found(assert_converges, daily, shop.FACTS[:1])
    assert steps(told)[0] == "A comes, a day and some hours after what came before"
    assert "when deliveries come" in told


def test_writing_the_time_of_arrival_is_found(assert_converges: Check) -> None:
    inbox = shop.inbox()

    @inbox.accumulate(SHOP, "added")
    def stamp(delivery: Delivery, tx: Connection) -> None:
        tx.execute(text("INSERT INTO sums VALUES (:time, 1)"), {"time": delivery.received_at.isoformat()})

    assert "the time of arrival" in found(assert_converges, inbox, shop.FACTS[:1])


def test_ties_converge_to_the_later_arrival(assert_converges: Check) -> None:
    inbox = shop.inbox()
    inbox.snapshot(SHOP, "saved*")(shop.save)
    assert_converges(inbox, shop.TIES, STATE, examples=EXAMPLES)


def test_a_guard_of_ones_own_that_refuses_ties_is_found(assert_converges: Check) -> None:
    inbox = shop.inbox()

    @inbox.snapshot(SHOP, "saved*")
    def save_first(delivery: Delivery, tx: Connection) -> None:
        values = {"resource": delivery.resource, "value": delivery.data["value"]}
        tx.execute(text("INSERT INTO mirror VALUES (:resource, :value) ON CONFLICT DO NOTHING"), values)

    assert steps(found(assert_converges, inbox, shop.TIES))[-1] == "a worker takes all of it into one transaction"


def test_giving_up_instead_of_trying_again_is_found(assert_converges: Check) -> None:
    def correct(delivery: Delivery, tx: Connection, error: Exception) -> None:
        if tx.execute(text("SELECT count(*) FROM mirror")).scalar_one() == 0:
            raise error
        tx.execute(text("UPDATE sums SET total = total + 1"))

    patient, hasty = shop.inbox(), shop.inbox()
    for inbox in (patient, hasty):
        inbox.snapshot(SHOP, "saved")(shop.save)
    patient.accumulate(SHOP, "added", name="correct")(lambda delivery, tx: correct(delivery, tx, Retry("not yet")))
    hasty.accumulate(SHOP, "added", name="correct")(lambda delivery, tx: correct(delivery, tx, Reject("unknown")))
    needed = (event(1), event(2, "added"))
    told = found(assert_converges, hasty, needed, "SELECT resource, total FROM sums")
    assert "given up: shop e2 (rejected: " in told
    # Without the one that it needs it is given up as well, by both.
    assert_converges(patient, needed, "SELECT resource, total FROM sums", examples=EXAMPLES)


def test_deliveries_that_show_nothing_are_told(assert_converges: Check) -> None:
    inbox = shop.inbox(max_attempts=1)
    inbox.accumulate(SHOP, "added")(shop.add)
    assert "no handler of the inbox takes any" in found(assert_converges, inbox, shop.SNAPSHOTS)

    @inbox.accumulate(SHOP, "saved*")
    def fail(delivery: Delivery, tx: Connection) -> None:
        raise ValueError("always")

    assert "shop e1: failed: ValueError: always" in found(assert_converges, inbox, shop.SNAPSHOTS)
    assert_converges(inbox, shop.SNAPSHOTS[:1], STATE, dead_letters=True, examples=5)


def test_what_cannot_be_tried_is_told(
    assert_converges: Check, inbox_client: Callable[..., Any], hookledger_database: LedgerDatabase
) -> None:
    inbox = shop.inbox()
    inbox.accumulate(SHOP, "added")(shop.add)
    one = event(1, "added")
    for deliveries, state, words in (
        ([], STATE, "at least one"),
        ([one, one], STATE, "deliveries 1 and 2 are one event"),
        ([("stripe", {})], STATE, "delivery 1 is of the source 'stripe'"),
        ([one[1]], STATE, "must be"),
        ([one], 5, "read_state must be"),
    ):
        with pytest.raises(SetupError, match=words):
            assert_converges(inbox, deliveries, state)
    assert inbox_client(inbox).post(*one).status == 200
    with pytest.raises(SetupError, match="before anything is posted"):
        assert_converges(inbox, [event(2, "added")], STATE)


def test_a_handler_that_does_not_end_is_told(
    assert_converges: Check, hookledger_database: LedgerDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "SECONDS_A_ROUND", 1.0)
    inbox, ever, calls = shop.inbox(), threading.Event(), itertools.count()

    @inbox.accumulate(SHOP, "added")
    def add_then_wait(delivery: Delivery, tx: Connection) -> None:
        shop.add(delivery, tx)
        if next(calls) == len(shop.FACTS) * 3:
            ever.wait()

    with pytest.raises(TimeoutError, match="did not end within 1 s"):
        assert_converges(inbox, shop.FACTS, STATE)
    ever.set()
    with hookledger_database.engine.connect() as connection:
        assert connection.execute(text("SELECT * FROM sums")).all() == [("all", 0)]


def test_a_request_is_a_delivery_and_all_is_as_before(
    assert_converges: Check, hookledger_database: LedgerDatabase
) -> None:
    inbox = shop.inbox()
    inbox.accumulate(SHOP, "added")(shop.add)
    with hookledger_database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE numbered (id serial PRIMARY KEY, of text REFERENCES sums)"))
        connection.execute(text("INSERT INTO numbered (of) VALUES ('all'), ('all')"))
    requests = [signed(inbox, *each) for each in shop.FACTS]
    assert_converges(inbox, requests, STATE, examples=5)
    with hookledger_database.engine.begin() as connection:
        assert connection.execute(text("SELECT * FROM sums")).all() == [("all", 0)]
        assert connection.execute(text("INSERT INTO numbered (of) VALUES ('all') RETURNING id")).scalar_one() == 3
        assert connection.execute(text("SELECT count(*) FROM hookledger.deliveries")).scalar_one() == 0
        assert connection.execute(text("SELECT to_regnamespace('hookledger_kept')")).scalar_one() is None
