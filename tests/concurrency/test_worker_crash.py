"""Deliveries that kill their worker, and workers that are killed (D10, B034, B035)."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookledger.ledger.statements.claim import SHORTEST_CLAIM
from tests.concurrency.hooks import EXIT_STATUS, MAX_ATTEMPTS
from tests.concurrency.workers import INBOXES, Workplace
from tests.processes import wait_until

NEIGHBOURS = [f"e{number}" for number in range(40)]
MOST_DEATHS = 10


@pytest.mark.parametrize("inbox", INBOXES)
def test_b035_a_delivery_that_ends_its_process_is_given_up_and_its_neighbours_are_applied(
    inbox: str, workplace: Workplace
) -> None:
    workplace.send("note", *NEIGHBOURS[:20])
    workplace.send("exit", "poison")
    workplace.send("note", *NEIGHBOURS[20:])
    deaths = 0
    while workplace.pending():
        # A worker that is gone has left its rows due in a few seconds; they are due now, so that the test is faster.
        workplace.make_due()
        with workplace.start(inbox) as worker:
            wait_until(lambda worker=worker: not worker.running or not workplace.pending())  # type: ignore[misc]
            if workplace.pending():
                assert worker.wait() == EXIT_STATUS
                deaths += 1
        assert deaths < MOST_DEATHS, workplace.pending()
    assert deaths == workplace.runs == MAX_ATTEMPTS
    dead = workplace.dead()
    assert set(dead) == {"poison"}
    assert dead["poison"].reason == "crashed"
    assert dead["poison"].attempts == MAX_ATTEMPTS
    assert set(workplace.attempts()) == set(NEIGHBOURS)
    assert workplace.outcomes() == {(event, "note"): "applied" for event in NEIGHBOURS}
    assert workplace.failures() == []
    workplace.check()


@pytest.mark.parametrize("inbox", INBOXES)
def test_b034_what_a_killed_worker_was_at_is_done_by_another(inbox: str, workplace: Workplace, tmp_path: Path) -> None:
    release = tmp_path / "release"
    workplace.send("block", "e1")
    with workplace.start(inbox, release=release) as victim:
        workplace.wait_for_run()
        with workplace.start(inbox, release=release) as other:
            other.wait_for_output("worker ready")
            victim.kill()
            release.touch()
            # It is due again in a few seconds by itself; it is due now, so that the test is faster.
            assert 0 < workplace.pending()["e1"].due_in <= SHORTEST_CLAIM
            workplace.make_due()
            wait_until(lambda: not workplace.pending())
            assert other.running
    assert workplace.runs == 2
    assert workplace.attempts() == {"e1": 2}
    assert workplace.failures() == []
    workplace.expect_nothing_left()
