"""Attempts that fail: what is recorded, when they are tried again, when they are given up (D6, D10)."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, text

from hookledger import Delivery, Inbox, Reject, Retry, RetryPolicy
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


def test_of_many_in_a_batch_only_those_that_fail_lose_their_writes(way: Way, work: Work, ledger: Ledger) -> None:
    """More than are given savepoints before the first ones are released."""
    good = [f"e{number}" for number in range(150)]
    ledger.record(*[bad(f"bad {id}") if id[-1] == "9" else document(id) for id in good])
    work(failing(way, lambda: ValueError("no")), batch=150)
    applied = [id for id in good if id[-1] != "9"]
    assert written(ledger, "fail") == dict.fromkeys(applied, 1)
    assert written(ledger) == {**dict.fromkeys(applied, 1), **{f"bad {id}": 1 for id in good if id[-1] == "9"}}
    assert {failure.attempt for failure in ledger.failures()} == {1}
    ledger.check()


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


def test_retry_after(way: Way, work: Work, ledger: Ledger) -> None:
    asked: dict[str, Any] = {"float": 1000.0, "int": 1000, "timedelta": timedelta(seconds=1000)}
    nonsense: dict[str, Any] = {"nothing": None, "nan": float("nan"), "text": "soon", "object": object()}
    inbox = inbox_of_shop(first_delay=100, jitter=0)

    def body(delivery: Delivery, _: Connection) -> None:
        raise Retry("come back", after={**asked, **nonsense}[delivery.event_id])

    inbox.accumulate(SHOP, name="wait")(way.handler(body))
    ledger.record(*map(document, [*asked, *nonsense]))
    work(inbox)
    pending = ledger.pending()
    assert {row.last_error for row in pending.values()} == {"Retry: come back"}
    assert {row.attempts for row in pending.values()} == {1}
    assert all(900 < pending[event].due_in <= 1000 for event in asked)
    # What is no number takes the policy.
    assert all(50 < pending[event].due_in <= 100 for event in nonsense)


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


RAISED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "exit": (lambda: SystemExit(3), "SystemExit: 3"),
    "Ctrl-C of a library": (lambda: KeyboardInterrupt("from a library"), "KeyboardInterrupt: from a library"),
    "no Exception": (lambda: Interrupt("past except Exception"), "Interrupt: past except Exception"),
    "broken": (Broken, "Broken: its text could not be made, that raised RuntimeError"),
    "huge": (lambda: ValueError("x" * 10_000_000), "characters more)"),
    "odd text": (lambda: ValueError("NUL \x00 and \ud83d"), "NUL \ufffd and \ufffd"),
    "empty": (lambda: ValueError(), "ValueError"),
    "half a retry": (HalfRetry, "HalfRetry"),
    "memory": (lambda: MemoryError(), "MemoryError"),
    "recursion": (lambda: RecursionError("deep"), "RecursionError: deep"),
    "the end of an iterator": (lambda: StopIteration(), "StopIteration"),
    "several": (lambda: ExceptionGroup("several", [ValueError("a"), KeyError("b")]), "several (2 sub-exceptions)"),
    "a cancelled task": (lambda: asyncio.CancelledError("not by us"), "CancelledError: not by us"),
    "a timeout": (lambda: TimeoutError("slow"), "TimeoutError: slow"),
    "a driver's error": (lambda: psycopg.OperationalError("elsewhere"), "OperationalError: elsewhere"),
    "a lost file": (lambda: ConnectionResetError("elsewhere"), "ConnectionResetError: elsewhere"),
}


def test_whatever_a_handler_raises_is_recorded(way: Way, work: Work, ledger: Ledger) -> None:
    # In the main thread, that of coroutines, KeyboardInterrupt is Ctrl-C.
    raised = {name: error for name, error in RAISED.items() if not (way.async_handlers and name.startswith("Ctrl-C"))}
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx, "fail")
        if delivery.event_id in raised:
            raise raised[delivery.event_id][0]()

    inbox.accumulate(SHOP, name="fail")(way.handler(body))
    inbox.accumulate(SHOP, name="write")(way.handler(write))
    ledger.record(*map(document, [*NEIGHBOURS, *raised]))
    work(inbox)
    failed = {failure.event_id: failure.error for failure in ledger.failures()}
    assert len(ledger.failures()) == len(raised)
    assert {name: failed.get(name) for name, (_, said) in raised.items() if said not in failed.get(name, "")} == {}
    assert max(map(len, failed.values())) < 5000
    assert written(ledger, "fail") == dict.fromkeys(NEIGHBOURS, 1)
    assert written(ledger) == dict.fromkeys([*NEIGHBOURS, *raised], 1)
    ledger.check()


def test_functions_of_the_delivery_may_fail_too(way: Way, work: Work, ledger: Ledger) -> None:
    errors: dict[str, BaseException] = {"odd": ValueError("odd"), "exit": SystemExit(3), "broken": Broken()}
    usual = {"resource": "r1", "version": 1, "deleted": False}
    inbox = inbox_of_shop()

    def failing_in(what: str) -> Callable[[Delivery], Any]:
        def read(delivery: Delivery) -> Any:
            error = errors.get(delivery.event_id)
            if error is not None:
                raise error
            return usual[what]

        return read

    for what in usual:
        options: dict[str, Any] = {what: failing_in(what)}
        inbox.snapshot(SHOP, name=what, **options)(way.handler(lambda *_: None))
    ledger.record(*[document(event, "r1", 1) for event in ("e1", *errors, "e2")])
    work(inbox)
    for what in usual:
        assert ledger.outcomes_of(what) == {"e1": "superseded", "e2": "applied"}
    failed = {(failure.event_id, failure.handler) for failure in ledger.failures()}
    assert failed == {(event, what) for event in errors for what in usual}


def test_what_an_accumulate_handler_must_not_return(way: Way, work: Work, ledger: Ledger) -> None:
    returned: dict[str, tuple[Any, str]] = {
        "text": ("text", "not str"),
        "list": ([1], "not list"),
        "number as text": ({"n": "1"}, "str for 'n'"),
        "truth": ({"n": True}, "bool for 'n'"),
        "nan": ({"n": float("nan")}, "cannot be added"),
        "infinity": ({"n": float("inf")}, "cannot be added"),
        "long": ({"n": 10**5000}, "cannot be added"),
    }
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> Any:
        write(delivery, tx)
        return returned.get(delivery.event_id, ({"n": 1}, ""))[0]

    inbox.accumulate(SHOP, name="add")(way.handler(body))
    ledger.record(*[document(event, "r1") for event in ("e1", *returned, "e2")])
    work(inbox)
    failed = {failure.event_id: failure.error for failure in ledger.failures()}
    assert {name: failed.get(name) for name, (_, said) in returned.items() if said not in failed.get(name, "")} == {}
    assert ledger.states("add")["r1"].state == {"n": 2}
    assert written(ledger) == {"e1": 1, "e2": 1}


def test_what_a_snapshot_handler_must_not_return(way: Way, work: Work, ledger: Ledger) -> None:
    returned: dict[str, Any] = {
        "text": "text",
        "nan": {"n": float("nan")},
        "object": {"n": object()},
        "bytes": {"n": b"bytes"},
    }
    inbox = inbox_of_shop()
    inbox.snapshot(SHOP, name="save")(
        way.handler(lambda delivery, _: returned.get(delivery.event_id, {"is": delivery.event_id}))
    )
    ledger.record(*[document(event, "r1", number) for number, event in enumerate(("e1", *returned))])
    work(inbox)
    assert {failure.event_id for failure in ledger.failures()} == set(returned)
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


def test_the_ledger_and_the_log_say_where(
    way: Way, work: Work, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> BaseException:
        return {}["how"]  # type: ignore[no-any-return]

    ledger.record(bad())
    with caplog.at_level(logging.INFO, "hookledger.worker"):
        work(failing(way, broken, max_attempts=2))
    for column in ("error FROM hookledger.failures", "last_error FROM hookledger.pending"):
        error = ledger.value(f"SELECT {column}")
        first, place = error.splitlines()
        assert first == "KeyError: 'how'"
        assert re.fullmatch(r"at test_failures\.py:\d+ in broken", place)
    (logged,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert logged.getMessage().endswith(f"KeyError: 'how' ({place})")
    assert logged.exc_info is None
    ledger.make_due()
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "hookledger.worker"):
        work(failing(way, broken, max_attempts=2))
    assert ledger.value("SELECT error FROM hookledger.dead_letters").splitlines() == ["KeyError: 'how'", place]
    (logged,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert logged.exc_info is not None
    assert isinstance(logged.exc_info[1], KeyError)
    marks = "SELECT count(DISTINCT fingerprint) FROM hookledger.failures"
    assert ledger.value(marks) == 1


def test_the_log_tells_no_parameters(way: Way, work: Work, ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        tx.execute(text("SELECT 1 / (length(:given) - 8)"), {"given": delivery.data["kept"]})

    inbox.accumulate(SHOP, name="divide")(way.handler(body))
    ledger.record(document("e1", kept="a secret"))
    with caplog.at_level(logging.DEBUG, "hookledger.worker"):
        work(inbox)
    (logged,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    told = logging.Formatter().format(logged)
    assert "in body, raised at" in told
    assert "DivisionByZero" in told
    assert "a secret" not in told
