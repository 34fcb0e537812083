"""A handler that runs for longer than until its due time is not run by anybody else (D9, B036)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from sqlalchemy import text

from hookledger import RetryPolicy
from hookledger.ledger.repository import Repository
from tests.concurrency.hooks import GATE
from tests.concurrency.workers import INBOXES, Workplace
from tests.processes import wait_until

REPOSITORY = Repository.of("hookledger")
OVERDUE = "SELECT count(*) FROM hookledger.pending WHERE due_at < clock_timestamp()"
AFTERWARDS = [f"after-{number}" for number in range(5)]


@pytest.mark.parametrize("inbox", INBOXES)
def test_b036_a_handler_that_is_overdue_runs_once(inbox: str, workplace: Workplace) -> None:
    """Each worker has one slot: what is settled while one of them is in its handler was claimed by the other."""
    workplace.send("wait", "slow")
    with ExitStack() as stack:
        with workplace.closed_gate():
            for _ in range(2):
                stack.enter_context(workplace.start(inbox, "--slots", "1"))
            workplace.wait_for_run()
            wait_until(lambda: workplace.value(OVERDUE) == 1)
            for event in AFTERWARDS:
                workplace.send("note", event)
                wait_until(lambda event=event: event in workplace.attempts())  # type: ignore[misc]
            with workplace.transaction() as connection:
                assert REPOSITORY.claim(connection, 10, RetryPolicy()) == []
            assert workplace.pending()["slow"].attempts == 1
            assert workplace.runs == 1
        wait_until(lambda: not workplace.pending())
    assert workplace.runs == 1
    assert workplace.attempts() == dict.fromkeys(["slow", *AFTERWARDS], 1)
    workplace.expect_nothing_left()


@pytest.mark.parametrize("inbox", INBOXES)
def test_a_claim_that_was_overtaken_runs_nothing(inbox: str, workplace: Workplace) -> None:
    """A worker that comes to hold what it claimed only after another has claimed it again must leave it alone. The
    worker is held up in its claim, then in its hold, by what a claim and a hold must wait for."""
    workplace.execute(
        "CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN PERFORM pg_advisory_xact_lock_shared({GATE}); RETURN NULL; END $$"
    )
    workplace.execute(
        "CREATE TRIGGER wait_at_gate AFTER UPDATE ON hookledger.pending FOR EACH ROW WHEN (NEW.attempts = 1)"
        " EXECUTE FUNCTION wait_at_gate()"
    )
    (overtaken,) = workplace.send("note", "overtaken")
    with (
        workplace.start(inbox, "--slots", "1"),
        ThreadPoolExecutor() as threads,
        workplace.transaction() as other,
    ):
        with workplace.closed_gate():
            wait_until(lambda: waiting(workplace) == ["advisory"])
            # Comes after the claim, and before the hold: it keeps everybody from SELECT ... FOR UPDATE.
            locked = threads.submit(other.execute, text("LOCK TABLE hookledger.pending IN EXCLUSIVE MODE"))
            wait_until(lambda: waiting(workplace) == ["advisory", "relation"])
        locked.result()
        wait_until(lambda: waiting(workplace) == ["relation"])
        assert REPOSITORY.claim_one(other, overtaken, 1, RetryPolicy(first_delay=3600)) == 2
        other.commit()
        workplace.send("note", "after")
        wait_until(lambda: "after" in workplace.attempts())
    assert workplace.attempts() == {"after": 1}
    assert workplace.outcomes() == {("after", "note"): "applied"}
    assert workplace.pending()["overtaken"].attempts == 2


def waiting(workplace: Workplace) -> list[str]:
    """What kinds of locks are waited for in the database."""
    rows = workplace.execute(
        "SELECT locktype FROM pg_locks WHERE NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1"
    )
    return [row.locktype for row in rows]
