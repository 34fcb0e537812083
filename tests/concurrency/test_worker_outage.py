"""What an outage of ours used up is given back, and a worker that is gone holds nothing (D9, D10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from hookledger.embedded import EmbeddedPostgres
from tests.concurrency.hooks import MAX_ATTEMPTS
from tests.concurrency.workers import INBOXES, Workplace
from tests.processes import wait_until

RESTARTS = 2 * MAX_ATTEMPTS

IN_A_HANDLER = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND (state = 'active' AND query LIKE 'SELECT pg_sleep%' OR state = 'idle in transaction' AND query LIKE '%runs%')
"""


@pytest.fixture
def workplace_of_its_own(own_database_url: str) -> Iterator[Workplace]:
    """A ledger on a server that may be restarted."""
    workplace = Workplace(own_database_url)
    yield workplace
    workplace.engine.dispose()


@pytest.mark.parametrize(
    ("inbox", "type", "mode"),
    [
        ("sync", "block", "immediate"),
        ("asynchronous", "block", "fast"),
        ("sync", "sleep", "fast"),
        ("asynchronous", "sleep", "immediate"),
    ],
)
def test_an_outage_alone_makes_no_dead_letter(
    inbox: str,
    type: str,
    mode: Literal["fast", "immediate"],
    workplace_of_its_own: Workplace,
    own_server: EmbeddedPostgres,
    tmp_path: Path,
) -> None:
    """The server is stopped under the same handler more often than it may be tried."""
    workplace, release = workplace_of_its_own, tmp_path / "release"
    workplace.send(type, "e1")
    with workplace.start(inbox, "--slots", "1", release=release) as worker:
        for number in range(RESTARTS):
            wait_until(lambda: workplace.execute(IN_A_HANDLER))
            # This commit brings the claim to the disk, which waits for none itself and would else be lost.
            workplace.execute(f"CREATE TABLE flushed_{number} ()")
            assert workplace.pending()["e1"].attempts == 1
            if number == RESTARTS - 1:
                workplace.execute("INSERT INTO released DEFAULT VALUES")
                release.touch()
            own_server.restart(mode)
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
        (pid,) = [row.pid for row in wait_until(lambda: workplace.execute(IN_A_HANDLER))]
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
