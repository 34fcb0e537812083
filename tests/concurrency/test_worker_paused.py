"""A pause holds for workers that run already, over kills and restarts, and charges nothing (D9, D10)."""

from __future__ import annotations

import signal

import psutil
import pytest
from sqlalchemy import Engine, create_engine

from hookledger.operate import locked
from hookledger.operate.pauses import PauseKind, pause, read_pauses, resume
from tests.concurrency.workers import INBOXES, Workplace
from tests.outcomes import SHOP
from tests.processes import wait_until

BEFORE, MEANWHILE = 50, 1500
SCHEMA = "hookledger"
PARKED = "SELECT count(*) FROM hookledger.pending WHERE parked"
HOLDER = """
    SELECT pid FROM pg_locks WHERE relation = 'hookledger.pauses'::regclass AND mode = 'RowShareLock' AND granted
"""


@pytest.mark.parametrize("inbox", INBOXES)
def test_a_source_paused_under_running_workers_that_are_killed(workplace: Workplace, inbox: str) -> None:
    engine: Engine = create_engine(workplace.url)
    workplace.send("note", *[f"before {number}" for number in range(BEFORE)])
    with workplace.start(inbox):
        wait_until(lambda: workplace.settled() == BEFORE)
        pause(engine, SCHEMA, PauseKind.SOURCE, SHOP, who="anna")
        workplace.send("note", *[f"meanwhile {number}" for number in range(MEANWHILE)])
        wait_until(lambda: workplace.value(PARKED) == MEANWHILE)
    for killed_at in (200, 700):
        # All of it is due again, as it is one park later, and the worker dies somewhere in the middle of it.
        workplace.execute("UPDATE hookledger.pending SET due_at = now(), parked = false")
        with workplace.start(inbox, "--batch", "20") as worker:
            wait_until(lambda least=killed_at: workplace.value(PARKED) >= least)  # type: ignore[misc]
            worker.kill()
    assert workplace.settled() == BEFORE
    assert workplace.value("SELECT max(attempts) FROM hookledger.pending") == 0
    with workplace.start(inbox):
        workplace.execute("UPDATE hookledger.pending SET due_at = now(), parked = false")
        wait_until(lambda: workplace.value(PARKED) == MEANWHILE)
        assert resume(engine, SCHEMA, PauseKind.SOURCE, SHOP) == (True, MEANWHILE)
        wait_until(lambda: workplace.settled() == BEFORE + MEANWHILE)
    assert set(workplace.attempts().values()) == {1}
    workplace.expect_nothing_left()
    engine.dispose()


def test_resume_does_not_wait_for_a_worker_that_was_stopped(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locked, "LOCK_SECONDS", 0.2)
    # Should it wait without end, that ends it.
    engine: Engine = create_engine(workplace.url, connect_args={"options": "-c statement_timeout=20s"})
    pause(engine, SCHEMA, PauseKind.HANDLER, "note", who="anna")
    workplace.send("note", "one")
    with workplace.start("sync", module="stopping_hooks") as worker:
        wait_until(lambda: psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED)
        with pytest.raises(locked.Locked) as refused:
            resume(engine, SCHEMA, PauseKind.HANDLER, "note")
        holder = workplace.value(HOLDER)
        told = str(refused.value)
        assert told.startswith(f"the handler note stays paused: process {holder} (role ")
        assert "hookledger worker, idle in transaction) has locked rows of hookledger.pauses" in told
        assert f"SELECT pg_terminate_backend({holder})" in told
        with engine.connect() as connection:
            assert [each.name for each in read_pauses(connection, SCHEMA)] == ["note"]
        worker.signal(signal.SIGCONT)
        wait_until(lambda: workplace.value(PARKED) == 1)
        assert resume(engine, SCHEMA, PauseKind.HANDLER, "note") == (True, 1)
        wait_until(lambda: workplace.settled() == 1)
    assert workplace.attempts() == {"one": 1}
    workplace.expect_nothing_left()
    engine.dispose()
