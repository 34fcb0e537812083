"""Attempts that fail: what is recorded, when they are tried again, when they are given up (D6, D10)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text

from hookledger import Delivery, Inbox, Reject, Retry, RetryPolicy
from hookledger.errors import UnreadableBody
from tests.integration.worker.writing import write, written
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop
from tests.ways import Way

Work = Callable[..., None]

NEIGHBOURS = [f"e{number}" for number in range(5)]


class Broken(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Interrupt(BaseException):
    """What some libraries raise to get past `except Exception`."""


class HalfRetry(Retry):
    """A subclass that forgot to call its parent."""

    def __init__(self) -> None:
        pass


def failing(way: Way, error: Callable[[], BaseException], **retry: Any) -> Inbox:
    """An inbox whose handler `fail` writes and then raises; its neighbour `write` does not."""
    inbox = inbox_of_shop(**retry)

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx, "fail")
        if delivery.event_type == "bad":
            raise error()

    inbox.accumulate(SHOP, name="fail")(way.handler(body))
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    return inbox


def bad(id: str = "bad") -> Any:
    return document(id, type="bad")


def test_a_handler_that_succeeded_is_not_run_again_when_another_fails(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = failing(way, lambda: ValueError("no"), max_attempts=3)
    ledger.record(bad())
    for attempt in (1, 2):
        work(inbox)
        assert ledger.outcomes() == {("bad", "write"): "applied"}
        assert written(ledger, "fail") == {}
        assert ledger.pending()["bad"].attempts == attempt
        ledger.make_due()
    work(inbox)
    assert written(ledger) == {"bad": 1}
    assert ledger.dead() == {"bad": ("failed", "ValueError: no", 3)}
    assert ledger.failures() == [("bad", attempt, "fail", "ValueError: no") for attempt in (1, 2, 3)]
    ledger.check()


def test_a_failure_says_what_and_when(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = failing(way, lambda: ValueError("no"), first_delay=100, factor=3, longest_delay=500, jitter=0.5)
    ledger.record(bad())
    for least in (100, 300, 500):
        work(inbox)
        pending = ledger.pending()["bad"]
        assert pending.last_error == "ValueError: no"
        assert least - 10 < pending.due_in <= least * 1.5
        ledger.make_due()


def test_b048_the_failures_of_an_outage_are_spread(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(*[bad(f"e{number}") for number in range(400)])
    work(failing(way, lambda: ValueError("no"), first_delay=1000, longest_delay=1000, jitter=0.25), time_budget=60)
    due = sorted(pending.due_in for pending in ledger.pending().values())
    assert len(due) == 400
    # 250 seconds of jitter, and no clump: no tenth of the time has more than twice its share.
    assert due[-1] - due[0] > 200
    for tenth in range(10):
        start = due[0] + tenth * 25
        assert sum(start <= moment < start + 25 for moment in due) < 80


def test_b051_exhausted_ones_are_out_of_the_way(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = failing(way, lambda: ValueError("no"), max_attempts=1)
    ledger.record(*[bad(f"bad{number}") for number in range(5)])
    ledger.record(*[document(f"e{number}") for number in range(10)])
    ledger.execute("UPDATE hookledger.pending SET due_at = now() - interval '1 day' WHERE delivery_id <= 5")
    work(inbox, batch=5, slots=1)
    assert len(ledger.outcomes_of("fail")) == 10
    assert len(ledger.dead()) == 5
    assert ledger.pending() == {}


@pytest.mark.parametrize("after", [1000.0, 1000, timedelta(seconds=1000)])
def test_retry_after(way: Way, work: Work, ledger: Ledger, after: Any) -> None:
    ledger.record(bad())
    work(failing(way, lambda: Retry("come back", after=after)))
    pending = ledger.pending()["bad"]
    assert 900 < pending.due_in <= 1000
    assert pending.last_error == "Retry: come back"
    assert pending.attempts == 1


@pytest.mark.parametrize("after", [None, float("nan"), "soon", object()])
def test_retry_after_nonsense_takes_the_policy(way: Way, work: Work, ledger: Ledger, after: Any) -> None:
    ledger.record(bad())
    work(failing(way, lambda: Retry(after=after), first_delay=100, jitter=0))
    assert 50 < ledger.pending()["bad"].due_in <= 100


def test_retry_after_ages_is_bounded_and_before_now_is_now(way: Way, work: Work, ledger: Ledger) -> None:
    waits: dict[str, Any] = {"ages": 1e15, "for ever": float("inf"), "longer": 10**400, "past": -5.0}
    inbox = inbox_of_shop(max_attempts=2)

    def body(delivery: Delivery, _: Connection) -> None:
        raise Retry(after=waits[delivery.event_id])

    inbox.accumulate(SHOP, name="wait")(way.handler(body))
    ledger.record(*map(document, waits))
    work(inbox)
    pending = ledger.pending()
    assert all(pending[event].due_in > 300 * 86_400 for event in ("ages", "for ever", "longer"))
    assert ledger.dead()["past"].attempts == 2


def test_retry_counts_as_an_attempt(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(bad())
    work(failing(way, lambda: Retry(after=0), max_attempts=3))
    assert ledger.dead()["bad"] == ("failed", "Retry: the handler asked for a retry", 3)


def test_reject_gives_up_at_once(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(bad(), document("good"))
    work(failing(way, lambda: Reject("not for us")))
    assert ledger.dead() == {"bad": ("rejected", "Reject: not for us", 1)}
    assert ledger.outcomes_of("write") == {"bad": "applied", "good": "applied"}
    assert len(ledger.failures()) == 1


def test_an_unreadable_body_found_by_the_handler(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, name="read")(way.handler(lambda delivery, _: delivery.data and None))
    ledger.record(document("e1"))
    ledger.execute("UPDATE hookledger.payloads SET body = 'no JSON'")
    work(inbox)
    assert ledger.dead()["e1"].reason == "unreadable"
    assert "not JSON" in ledger.dead()["e1"].error


def test_a_body_that_was_unreadable_at_receipt_is_never_claimed(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(b"no JSON")
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    work(inbox)
    assert [dead.reason for dead in ledger.dead().values()] == ["unreadable"]
    assert written(ledger) == {}


def test_each_handlers_own_policy_holds(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop(max_attempts=5)

    def body(delivery: Delivery, _: Connection) -> None:
        raise ValueError("no")

    inbox.accumulate(SHOP, name="patient", retry=RetryPolicy(max_attempts=3))(way.handler(body))
    inbox.accumulate(SHOP, name="hasty", retry=RetryPolicy(max_attempts=1))(way.handler(body))
    ledger.record(document("e1"))
    for _ in range(3):
        assert ledger.dead() == {}
        work(inbox)
        ledger.make_due()
    assert ledger.dead()["e1"].attempts == 3


def test_a_reject_of_one_handler_does_not_take_the_turn_of_another(way: Way, work: Work, ledger: Ledger) -> None:
    """The time budget is used up by the handler that rejects."""
    ledger.record(*[bad(f"e{number}") for number in range(4)])
    work(failing(way, lambda: Reject("no")), time_budget=1e-9)
    assert written(ledger) == {f"e{number}": 1 for number in range(4)}
    assert len(ledger.dead()) == 4


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (lambda: SystemExit(3), "SystemExit: 3"),
        (lambda: KeyboardInterrupt("from a library"), "KeyboardInterrupt: from a library"),
        (lambda: Interrupt("past except Exception"), "Interrupt: past except Exception"),
        (Broken, "Broken: its text could not be made, that raised RuntimeError"),
        (lambda: ValueError("x" * 10_000_000), "characters more)"),
        (lambda: ValueError("NUL \x00 and \ud83d"), "NUL \ufffd and \ufffd"),
        (lambda: ValueError(), "ValueError"),
        (HalfRetry, "HalfRetry"),
        (lambda: UnreadableBody("no"), "UnreadableBody: no"),
        (lambda: MemoryError(), "MemoryError"),
        (lambda: RecursionError("deep"), "RecursionError: deep"),
        (lambda: StopIteration(), "Stop"),
        (lambda: ExceptionGroup("several", [ValueError("a"), KeyError("b")]), "several (2 sub-exceptions)"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 30 else None,
)
def test_whatever_a_handler_raises_is_recorded(
    way: Way, work: Work, ledger: Ledger, error: Callable[[], BaseException], said: str
) -> None:
    if way.async_handlers and isinstance(error() if error is not Broken else None, KeyboardInterrupt):
        # In the main thread it is Ctrl-C.
        error, said = (lambda: Interrupt("instead")), "Interrupt: instead"
    ledger.record(*[document(event) for event in NEIGHBOURS], bad())
    work(failing(way, error))
    (failure,) = ledger.failures()
    assert said in failure.error
    assert len(failure.error) < 5000
    assert written(ledger, "fail") == dict.fromkeys(NEIGHBOURS, 1)
    assert written(ledger) == dict.fromkeys([*NEIGHBOURS, "bad"], 1)
    ledger.check()


@pytest.mark.parametrize("what", ["resource", "version", "deleted"])
@pytest.mark.parametrize("error", [ValueError("odd"), SystemExit(3), Broken()])
def test_functions_of_the_delivery_may_fail_too(
    way: Way, work: Work, ledger: Ledger, what: str, error: BaseException
) -> None:
    inbox = inbox_of_shop()

    def fail(delivery: Delivery) -> Any:
        if delivery.event_type == "bad":
            raise error
        return {"resource": "r1", "version": delivery.id, "deleted": False}[what]

    inbox.snapshot(SHOP, name="save", **{what: fail})(way.handler(lambda *_: None))  # type: ignore[arg-type]
    ledger.record(document("e1", "r1", 1), document("bad", "r1", 2, type="bad"), document("e3", "r1", 3))
    work(inbox)
    assert ledger.outcomes_of("save") == {"e1": "superseded", "e3": "applied"}
    assert [failure.event_id for failure in ledger.failures()] == ["bad"]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("text", "not str"),
        ([1], "not list"),
        ({"n": "1"}, "str for 'n'"),
        ({"n": True}, "bool for 'n'"),
        ({"n": float("nan")}, "cannot be added"),
        ({"n": float("inf")}, "cannot be added"),
        ({"n": 10**3000}, "cannot be added"),
    ],
    ids=repr,
)
def test_what_an_accumulate_handler_must_not_return(
    way: Way, work: Work, ledger: Ledger, returned: Any, said: str
) -> None:
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> Any:
        write(delivery, tx)
        return returned if delivery.event_type == "bad" else {"n": 1}

    inbox.accumulate(SHOP, name="add")(way.handler(body))
    ledger.record(document("e1", "r1"), document("bad", "r1", type="bad"), document("e3", "r1"))
    work(inbox)
    (failure,) = ledger.failures()
    assert said in failure.error
    assert ledger.states("add")["r1"].state == {"n": 2}
    assert written(ledger) == {"e1": 1, "e3": 1}


@pytest.mark.parametrize(
    "returned", ["text", {"n": float("nan")}, {"n": object()}, {"n": b"bytes"}], ids=["text", "nan", "object", "bytes"]
)
def test_what_a_snapshot_handler_must_not_return(way: Way, work: Work, ledger: Ledger, returned: Any) -> None:
    inbox = inbox_of_shop()
    inbox.snapshot(SHOP, name="save")(
        way.handler(lambda delivery, _: returned if delivery.event_type == "bad" else {"is": delivery.event_id})
    )
    ledger.record(document("e1", "r1", 1), document("bad", "r1", 2, type="bad"))
    work(inbox)
    assert [failure.event_id for failure in ledger.failures()] == ["bad"]
    assert ledger.states("save")["r1"].state == {"is": "e1"}


def test_numbers_for_no_resource_are_refused_with_what_to_do(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, name="add")(way.handler(lambda *_: {"n": 1}))
    ledger.record(document("e1"))
    work(inbox)
    assert "resource=" in ledger.failures()[0].error


def test_numbers_that_meet_a_state_of_another_kind_charge_their_handler_only(
    way: Way, work: Work, ledger: Ledger
) -> None:
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    inbox.accumulate(SHOP, name="add")(way.handler(lambda *_: {"n": 1}))
    ledger.record(*[document(f"e{number}", f"r{number}") for number in range(5)])
    ledger.execute(
        "INSERT INTO hookledger.resource_state (handler, source, resource, state) "
        """VALUES ('add', 'shop', 'r3', '{"n": "text"}')"""
    )
    work(inbox)
    assert [(failure.event_id, failure.handler) for failure in ledger.failures()] == [("e3", "add")]
    assert written(ledger) == {f"e{number}": 1 for number in range(5)}
    assert len(ledger.outcomes_of("add")) == 4


def test_a_document_that_a_handler_changed_is_not_given_to_the_next_attempt(
    way: Way, work: Work, ledger: Ledger
) -> None:
    """The batch is rolled back and run again, because of a neighbour."""
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        delivery.data.pop("type")
        write(delivery, tx)
        if delivery.event_type == "bad":
            tx.connection.rollback()

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*[document(event) for event in NEIGHBOURS], bad())
    work(inbox)
    assert [failure.event_id for failure in ledger.failures()] == ["bad"]
    assert written(ledger) == dict.fromkeys(NEIGHBOURS, 1)


@pytest.mark.parametrize("sql", ["SELECT pg_sleep(60)", "DO $$ BEGIN RAISE serialization_failure; END $$"])
def test_an_error_of_another_database_is_the_handlers(
    way: Way, work: Work, ledger: Ledger, database_url: str, sql: str
) -> None:
    """A server that is away, a timeout or a deadlock there says nothing of our connection."""
    other = create_engine(database_url, connect_args={"options": "-c statement_timeout=50ms"})
    away = create_engine("postgresql+psycopg://nobody@127.0.0.1:1/nowhere")
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx)
        if delivery.event_id == "e1":
            with other.connect() as connection:
                connection.execute(text(sql))
        if delivery.event_id == "e2":
            away.connect()

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*[document(event) for event in NEIGHBOURS])
    # SQLAlchemy's connections of other engines are not for the greenlet of an asynchronous handler.
    work(inbox)
    other.dispose()
    assert sorted(failure.event_id for failure in ledger.failures()) == ["e1", "e2"]
    assert written(ledger) == dict.fromkeys(("e0", "e3", "e4"), 1)


def test_a_statement_that_takes_too_long_is_the_handlers_failure(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(*[document(event) for event in NEIGHBOURS], bad())
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx)
        if delivery.event_type == "bad":
            tx.execute(text("SET LOCAL statement_timeout = '20ms'"))
            tx.execute(text("SELECT pg_sleep(60)"))

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    work(inbox)
    (failure,) = ledger.failures()
    assert "QueryCanceled" in failure.error
    assert written(ledger) == dict.fromkeys(NEIGHBOURS, 1)


def test_a_lock_that_is_not_given_is_the_handlers_failure(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(*[document(event) for event in NEIGHBOURS], bad())
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx)
        if delivery.event_type == "bad":
            tx.execute(text("SET LOCAL lock_timeout = '20ms'"))
            tx.execute(text("LOCK TABLE locked"))

    ledger.execute("CREATE TABLE locked ()")
    inbox.accumulate(SHOP, name="write")(way.handler(body))
    with ledger.transaction() as other:
        other.execute(text("LOCK TABLE locked"))
        work(inbox)
    assert [failure.event_id for failure in ledger.failures()] == ["bad"]
    assert written(ledger) == dict.fromkeys(NEIGHBOURS, 1)


def test_an_observer_that_fails_costs_nothing(way: Way, work: Work, ledger: Ledger, caplog: Any) -> None:
    inbox = inbox_of_shop()
    inbox.accumulate(SHOP, name="write")(way.handler(write))

    def observe(_: Any) -> None:
        raise LookupError("observer")

    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox, observe=observe)
    assert written(ledger) == dict.fromkeys(NEIGHBOURS, 1)
    assert "the observer of the worker failed" in caplog.text
