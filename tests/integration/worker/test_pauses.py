"""Paused sources and handlers: nothing of theirs runs, nothing is charged, and resuming makes it due at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from hookledger import Delivery, Inbox, Reject, RetryPolicy
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import Parked
from hookledger.operate.pauses import PauseKind, kinds_known, pause, read_pauses, resume
from hookledger.operate.retention import brief
from hookledger.worker.pauses import LONGEST, SHORTEST
from tests.integration.worker.writing import write, written
from tests.outcomes import SHOP, Ledger, document, shop
from tests.processes import wait_until
from tests.ways import Way

Work = Callable[..., None]
SCHEMA = "hookledger"
SOURCE, HANDLER = PauseKind.SOURCE, PauseKind.HANDLER
OTHER = "other-shop"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def operator(database_url: str) -> Iterator[Engine]:
    """The engine of whoever pauses and resumes."""
    engine = create_engine(database_url)
    yield engine
    engine.dispose()


def two_handlers(way: Way, *, failing: Callable[[Delivery], None] | None = None, **retry: Any) -> Inbox:
    """An inbox of two sources; the handlers `first` and `second` of the shop write a row for each event, as `third`
    does for the other source.

    Args:
        failing: called by `first` instead.
    """
    inbox = Inbox(shop(), shop(OTHER), retry=RetryPolicy(**retry))

    def first(delivery: Delivery, tx: Connection) -> None:
        if failing is not None:
            failing(delivery)
        write(delivery, tx, "first")

    def second(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx, "second")

    def third(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx, "third")

    inbox.accumulate(SHOP, "*", name="first")(way.handler(first))
    inbox.accumulate(SHOP, "*", name="second")(way.handler(second))
    inbox.accumulate(OTHER, "*", name="third")(way.handler(third))
    return inbox


def charged(ledger: Ledger) -> dict[str, tuple[int, str | None]]:
    return {event: (row.attempts, row.last_error) for event, row in ledger.pending().items()}


def parked(ledger: Ledger) -> set[str]:
    rows = ledger.execute(
        "SELECT event_id FROM hookledger.pending JOIN hookledger.deliveries ON id = delivery_id WHERE parked"
    )
    return {row.event_id for row in rows}


def test_deliveries_of_a_paused_source_wait_and_those_of_others_do_not(
    way: Way, work: Work, ledger: Ledger, operator: Engine
) -> None:
    inbox = two_handlers(way)
    assert pause(operator, SCHEMA, SOURCE, SHOP, who="anna", reason="their API is down")
    assert not pause(operator, SCHEMA, SOURCE, SHOP, who="bert")
    ledger.record(document("e1"), document("e2"))
    ledger.record(document("o1"), source=shop(OTHER))
    for _ in range(3):
        ledger.make_due()
        work(inbox)
    assert written(ledger, "first") == written(ledger, "second") == {}
    assert written(ledger, "third") == {"o1": 1}
    assert charged(ledger) == {"e1": (0, None), "e2": (0, None)}
    assert parked(ledger) == {"e1", "e2"}
    assert all(SHORTEST / 2 < row.due_in <= LONGEST * 1.5 for row in ledger.pending().values())
    assert resume(operator, SCHEMA, SOURCE, SHOP) == (True, 2)
    assert all(row.due_in <= 0 for row in ledger.pending().values())
    work(inbox)
    assert written(ledger, "first") == written(ledger, "second") == {"e1": 1, "e2": 1}
    assert ledger.failures() == []
    ledger.check()


def test_a_paused_handler_is_left_out_and_has_its_turn_later(
    way: Way, work: Work, ledger: Ledger, operator: Engine
) -> None:
    inbox = two_handlers(way)
    pause(operator, SCHEMA, HANDLER, "second", who="anna")
    ledger.record(document("e1"))
    for _ in range(3):
        ledger.make_due()
        work(inbox)
    assert ledger.outcomes() == {("e1", "first"): "applied"}
    assert charged(ledger) == {"e1": (0, None)}
    assert resume(operator, SCHEMA, HANDLER, "second") == (True, 1)
    work(inbox)
    assert written(ledger, "first") == written(ledger, "second") == {"e1": 1}
    assert ledger.pending() == {}


def test_a_delivery_is_not_given_up_before_its_paused_handler_had_a_turn(
    way: Way, work: Work, ledger: Ledger, operator: Engine
) -> None:
    def reject(_: Delivery) -> None:
        raise Reject("never")

    inbox = two_handlers(way, failing=reject)
    pause(operator, SCHEMA, HANDLER, "second", who="anna")
    ledger.record(document("e1"))
    work(inbox)
    assert ledger.dead() == {}
    assert [(failed.handler, failed.attempt) for failed in ledger.failures()] == [("first", 1)]
    resume(operator, SCHEMA, HANDLER, "second")
    ledger.make_due()
    work(inbox)
    assert written(ledger, "second") == {"e1": 1}
    assert ledger.dead()["e1"].reason == "rejected"


def test_attempts_and_errors_from_before_the_pause_stay(way: Way, work: Work, ledger: Ledger, operator: Engine) -> None:
    broken = True

    def fail(_: Delivery) -> None:
        if broken:
            raise ValueError("not today")

    inbox = two_handlers(way, failing=fail)
    ledger.record(document("e1"), document("e2"))
    work(inbox)
    before = charged(ledger)
    assert before["e1"][0] == 1
    # As a worker leaves it that died with it in its hands.
    ledger.execute(
        "UPDATE hookledger.pending SET last_error = NULL FROM hookledger.deliveries WHERE id = delivery_id"
        " AND event_id = 'e2'"
    )
    pause(operator, SCHEMA, SOURCE, SHOP, who="anna")
    for _ in range(4):
        ledger.make_due()
        work(inbox)
    assert charged(ledger) == {"e1": before["e1"], "e2": (1, None)}
    broken = False
    assert resume(operator, SCHEMA, SOURCE, SHOP) == (True, 2)
    work(inbox)
    assert written(ledger, "first") == {"e1": 1, "e2": 1}
    assert len(ledger.failures()) == 2
    ledger.check()


def test_what_waits_for_its_next_attempt_is_not_made_due(
    way: Way, work: Work, ledger: Ledger, operator: Engine
) -> None:
    def fail(_: Delivery) -> None:
        raise ValueError("not today")

    inbox = two_handlers(way, failing=fail, first_delay=1000)
    ledger.record(document("e1"))
    work(inbox)
    pause(operator, SCHEMA, SOURCE, SHOP, who="anna")
    work(inbox)
    assert resume(operator, SCHEMA, SOURCE, SHOP) == (True, 0)
    assert ledger.pending()["e1"].due_in > 500


def test_resuming_leaves_what_is_paused_otherwise(way: Way, work: Work, ledger: Ledger, operator: Engine) -> None:
    inbox = two_handlers(way)
    ledger.record(document("e1"))
    ledger.record(document("o1"), source=shop(OTHER))
    for kind, name in ((SOURCE, SHOP), (HANDLER, "third"), (HANDLER, "second")):
        pause(operator, SCHEMA, kind, name, who="anna", reason=f"{name}!")
    work(inbox)
    assert parked(ledger) == {"e1", "o1"}
    assert resume(operator, SCHEMA, HANDLER, "third") == (True, 1)
    assert parked(ledger) == {"e1"}
    work(inbox)
    assert written(ledger, "third") == {"o1": 1}
    with operator.connect() as connection:
        paused = read_pauses(connection, SCHEMA)
    assert [(one.kind, one.name, one.who, one.reason) for one in paused] == [
        (SOURCE, SHOP, "anna", "shop!"),
        (HANDLER, "second", "anna", "second!"),
    ]
    resume(operator, SCHEMA, SOURCE, SHOP)
    work(inbox)
    assert written(ledger, "first") == {"e1": 1}
    assert parked(ledger) == {"e1"}
    resume(operator, SCHEMA, HANDLER, "second")
    work(inbox)
    assert written(ledger, "second") == {"e1": 1}
    assert resume(operator, SCHEMA, HANDLER, "second") == (False, 0)


def test_resuming_a_handler_leaves_what_it_has_done_to_the_pause_of_another(
    way: Way, work: Work, ledger: Ledger, operator: Engine
) -> None:
    inbox = two_handlers(way)
    pause(operator, SCHEMA, HANDLER, "second", who="anna")
    ledger.record(document("e1"))
    work(inbox)
    pause(operator, SCHEMA, HANDLER, "first", who="anna")
    ledger.record(document("e2"))
    work(inbox)
    assert parked(ledger) == {"e1", "e2"}
    # Of e1, which "first" has done, it is certain that the other pause keeps it; of e2 a worker finds it out.
    assert resume(operator, SCHEMA, HANDLER, "first") == (True, 1)
    assert parked(ledger) == {"e1"}
    work(inbox)
    assert written(ledger, "first") == {"e1": 1, "e2": 1}
    assert parked(ledger) == {"e1", "e2"}
    assert charged(ledger) == {"e1": (0, None), "e2": (0, None)}
    # Nothing else is paused: whatever is still parked is made due.
    assert resume(operator, SCHEMA, HANDLER, "second") == (True, 2)


def test_resuming_waits_for_whoever_parks_at_that_moment(ledger: Ledger, operator: Engine) -> None:
    repository = Repository.of(SCHEMA)
    pause(operator, SCHEMA, SOURCE, SHOP, who="anna")
    [delivery_id] = ledger.record(document("e1"))
    with ThreadPoolExecutor(1) as threads:
        with operator.begin() as connection:
            [row] = repository.claim(connection, 10, RetryPolicy())
            assert SHOP in (row.pauses or "")
            assert SHOP in (repository.hold_pauses(connection) or "")
            repository.park(connection, [Parked(delivery_id, row.attempts, 1, None, LONGEST)])
            resuming = threads.submit(resume, operator, SCHEMA, SOURCE, SHOP)
            wait_until(lambda: ledger.value(WAITING) == 1)
        assert resuming.result() == (True, 1)
    assert ledger.pending()["e1"].due_in <= 0
    with operator.begin() as connection:
        assert repository.hold_pauses(connection) is None


def test_resuming_goes_in_batches_and_keeps_the_order(
    ledger: Ledger, operator: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookledger.operate.pauses.BATCH", 3)
    ids = ledger.record(*[document(f"e{number}") for number in range(8)])
    ledger.execute("UPDATE hookledger.pending SET parked = true, due_at = now() + random() * interval '1 hour'")
    told: list[int] = []
    # The one who resumed before was interrupted: nothing is paused any more.
    assert resume(operator, SCHEMA, SOURCE, SHOP, progress=told.append) == (False, 8)
    assert told == [3, 6, 8]
    due = [row.due_at for row in ledger.execute("SELECT due_at FROM hookledger.pending")]
    assert Counter(due).most_common(1)[0][1] == 8
    with operator.begin() as connection:
        claimed = Repository.of(SCHEMA).claim(connection, 10, RetryPolicy())
    assert sorted(row.id for row in claimed) == ids


def test_sources_and_handlers_are_told_apart_by_what_the_ledger_knows(
    way: Way, work: Work, ledger: Ledger, operator: Engine
) -> None:
    ledger.record(document("e1"))
    work(two_handlers(way))
    with operator.connect() as connection:
        assert kinds_known(connection, SCHEMA, SHOP) == {SOURCE}
        assert kinds_known(connection, SCHEMA, "second") == {HANDLER}
        assert kinds_known(connection, SCHEMA, "no such\x00") == set()


@pytest.mark.parametrize(("kind", "name"), [(SOURCE, SHOP), (HANDLER, "second")])
def test_what_is_resumed_while_a_worker_is_about_to_park_it_is_run(
    way: Way, work: Work, ledger: Ledger, operator: Engine, kind: PauseKind, name: str
) -> None:
    pause(operator, SCHEMA, kind, name, who="anna")
    ledger.record(document("e1"))
    with ThreadPoolExecutor(1) as threads:
        with operator.begin() as resuming:
            resuming.execute(text("DELETE FROM hookledger.pauses"))
            # The worker has claimed it, sees the pause, and waits for the one who resumes.
            working = threads.submit(work, two_handlers(way))
            wait_until(lambda: ledger.value(WAITING) == 1)
        working.result()
    assert written(ledger, "first") == written(ledger, "second") == {"e1": 1}
    assert ledger.pending() == {}


SILENT = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()
"""
"""Connections that a stopped process holds open in a transaction."""


def test_one_who_is_stopped_while_resuming_does_not_hold_up_workers(
    operator: Engine, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that park something wait for the row of the pause."""
    pause(operator, SCHEMA, SOURCE, SHOP, who="test")
    monkeypatch.setattr(brief, "LONGEST_SILENCE", "200ms")

    def sleep(_: Any, __: Any, statement: str, *___: Any) -> None:
        if "statement_timestamp" in statement:
            wait_until(lambda: ledger.value(SILENT) == 0)

    event.listen(operator, "before_cursor_execute", sleep)
    with pytest.raises(DBAPIError, match="idle-in-transaction"):
        resume(operator, SCHEMA, SOURCE, SHOP)
    event.remove(operator, "before_cursor_execute", sleep)
    assert resume(operator, SCHEMA, SOURCE, SHOP) == (True, 0)


def test_a_handler_is_paused_under_its_former_name_too(way: Way, work: Work, operator: Engine, ledger: Ledger) -> None:
    inbox = two_handlers(way)
    inbox.handlers["first"] = replace(inbox.handlers["first"], aliases=("former.first",))
    ledger.record(document("e1"))
    pause(operator, SCHEMA, HANDLER, "former.first", who="test")
    work(inbox)
    assert ledger.outcomes() == {("e1", "second"): "applied"}
    assert ledger.pending()["e1"].due_in > SHORTEST / 2
    pause(operator, SCHEMA, HANDLER, "second", who="test")
    ledger.record(document("e2"))
    work(inbox)
    assert ledger.outcomes_of("first") == {}
    assert ledger.pending()["e2"].due_in > SHORTEST / 2
    for name in ("former.first", "second"):
        resume(operator, SCHEMA, HANDLER, name)
    work(inbox)
    assert written(ledger, "first") == written(ledger, "second") == {"e1": 1, "e2": 1}
