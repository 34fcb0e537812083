"""What an outage of ours used up is given back, and a worker that is gone holds nothing (D9, D10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from hookledger.embedded import EmbeddedPostgres
from tests.concurrency.hooks import MAX_ATTEMPTS
from tests.concurrency.workers import INBOXES, Workplace
from tests.processes import Child, wait_until

RESTARTS = 2 * MAX_ATTEMPTS

ASLEEP = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'
    AND query LIKE 'SELECT pg_sleep%'
"""


@pytest.fixture
def workplace_of_its_own(own_database_url: str) -> Iterator[Workplace]:
    """A ledger on a server that may be restarted."""
    workplace = Workplace(own_database_url)
    yield workplace
    workplace.engine.dispose()


@pytest.mark.parametrize(("inbox", "mode"), [("sync", "immediate"), ("asynchronous", "fast")])
def test_an_outage_alone_makes_no_dead_letter(
    inbox: str, mode: Literal["fast", "immediate"], workplace_of_its_own: Workplace, own_server: EmbeddedPostgres
) -> None:
    """The server is stopped under a statement of the same handler more often than that may be tried."""
    workplace = workplace_of_its_own
    workplace.send("sleep", "e1")
    with workplace.start(inbox, "--slots", "1") as worker:
        for number in range(RESTARTS):
            wait_until(lambda: workplace.execute(ASLEEP))
            flush(workplace)
            if number == RESTARTS - 1:
                workplace.execute("INSERT INTO released DEFAULT VALUES")
            own_server.restart(mode)
        expect_applied_at_the_first_attempt(workplace, worker)


def test_an_outage_that_a_handler_does_not_see_makes_no_dead_letter(
    workplace_of_its_own: Workplace, own_server: EmbeddedPostgres, tmp_path: Path
) -> None:
    """The same while the handler does something else."""
    workplace = workplace_of_its_own
    workplace.send("stay", "e1")
    with workplace.start("sync", "--slots", "1", release=tmp_path / "release") as worker:
        for number in range(1, RESTARTS + 1):
            wait_until(lambda number=number: len(list(tmp_path.glob("run-*[0-9]"))) == number)  # type: ignore[misc]
            flush(workplace)
            own_server.restart("immediate")
            answer(tmp_path)
        wait_until(lambda: len(list(tmp_path.glob("run-*[0-9]"))) > RESTARTS)
        answer(tmp_path)
        expect_applied_at_the_first_attempt(workplace, worker)


def flush(workplace: Workplace) -> None:
    """Bring the claim to the disk by a commit: it waits for none itself, and would else be lost with the server."""
    workplace.execute("CREATE TABLE flushed ()")
    workplace.execute("DROP TABLE flushed")
    assert workplace.pending()["e1"].attempts == 1


def answer(folder: Path) -> None:
    """Let the handlers go on that stay."""
    for run in folder.glob("run-*[0-9]"):
        run.with_suffix(".go").touch()


def expect_applied_at_the_first_attempt(workplace: Workplace, worker: Child) -> None:
    wait_until(lambda: workplace.outcomes())
    assert worker.running
    assert "Traceback" not in worker.output
    assert workplace.attempts() == {"e1": 1}
    assert workplace.failures() == []
    workplace.expect_nothing_left()


@pytest.mark.parametrize("inbox", INBOXES)
def test_a_worker_that_is_killed_within_a_long_statement_holds_its_rows_no_more(
    inbox: str, workplace: Workplace
) -> None:
    workplace.send("sleep", "e1")
    with workplace.start(inbox) as victim:
        (pid,) = [row.pid for row in wait_until(lambda: workplace.execute(ASLEEP))]
        with workplace.start(inbox) as other:
            other.wait_for_output("worker ready")
            workplace.execute("INSERT INTO released DEFAULT VALUES")
            victim.kill()
            # The statement has nearly ten minutes to go.
            wait_until(lambda: not workplace.execute(f"SELECT FROM pg_stat_activity WHERE pid = {pid}"))
            workplace.make_due()
            wait_until(lambda: not workplace.pending())
            assert other.running
    assert workplace.attempts() == {"e1": 2}
    assert workplace.failures() == []
    workplace.expect_nothing_left()
