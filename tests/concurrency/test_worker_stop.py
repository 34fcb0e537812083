"""Workers that are told to stop: short work ends, the rest is given back, the process ends in time (D10, B050)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.concurrency.workers import INBOXES, Workplace
from tests.processes import Child, wait_until

SIGNALS = (signal.SIGTERM, signal.SIGINT)
LONG_GRACE, SHORT_GRACE = 600.0, 0.5

REST = [f"e{number}" for number in range(30)]


def expect_given_back(workplace: Workplace, events: list[str]) -> None:
    """The events are as if they had never been claimed: due now, with no attempt charged."""
    pending = workplace.pending()
    assert set(pending) == set(events)
    for row in pending.values():
        assert row.attempts == 0
        assert row.due_in <= 0
        assert row.last_error is None
    assert workplace.failures() == []
    assert workplace.dead() == {}
    workplace.check()


def stop(worker: Child, number: signal.Signals) -> None:
    """Send the signal, and wait until it has been noticed."""
    before = worker.output.count("stopping")
    worker.signal(number)
    wait_until(lambda: worker.output.count("stopping") > before)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("inbox", INBOXES)
def test_b050_what_runs_is_ended_and_the_rest_of_the_batch_is_given_back(
    inbox: str, number: signal.Signals, workplace: Workplace
) -> None:
    workplace.send("wait", "first")
    workplace.send("note", *REST)
    with workplace.start(inbox, "--slots", "1", "--grace", str(LONG_GRACE)) as worker:
        with workplace.closed_gate():
            workplace.wait_for_run()
            stop(worker, number)
            # Not claimed by a worker that stops.
            workplace.send("note", "late")
        assert worker.wait() == 0, worker.output
        assert "Traceback" not in worker.output
    assert workplace.outcomes() == {("first", "wait"): "applied"}
    assert workplace.attempts() == {"first": 1}
    expect_given_back(workplace, [*REST, "late"])
    with workplace.start(inbox) as worker:
        wait_until(lambda: not workplace.pending())
    assert workplace.attempts() == dict.fromkeys(["first", *REST, "late"], 1)
    workplace.expect_nothing_left()


@pytest.mark.parametrize("type", ["block", "wait"])
@pytest.mark.parametrize("inbox", INBOXES)
def test_b050_a_handler_that_does_not_end_is_given_up_after_the_grace_time(
    inbox: str, type: str, workplace: Workplace
) -> None:
    """It stays in Python (`block`), or in a statement (`wait`)."""
    workplace.send(type, "endless")
    workplace.send("note", *REST)
    with workplace.closed_gate(), workplace.start(inbox, "--slots", "1", "--grace", str(SHORT_GRACE)) as worker:
        workplace.wait_for_run()
        worker.signal(signal.SIGTERM)
        worker.wait()
        assert "Traceback" not in worker.output
        # The gate is still closed: nobody holds the rows any more, not even for a moment.
        expect_given_back(workplace, ["endless", *REST])
    assert workplace.outcomes() == {}
    assert workplace.attempts() == {}


@pytest.mark.parametrize("type", ["block", "wait"])
@pytest.mark.parametrize("inbox", INBOXES)
def test_b050_a_second_signal_gives_up_what_runs(inbox: str, type: str, workplace: Workplace) -> None:
    workplace.send(type, "endless")
    workplace.send("note", *REST)
    with workplace.closed_gate(), workplace.start(inbox, "--slots", "1", "--grace", str(LONG_GRACE)) as worker:
        workplace.wait_for_run()
        stop(worker, signal.SIGTERM)
        assert worker.running
        worker.signal(signal.SIGTERM)
        worker.wait()
        assert "Traceback" not in worker.output
        expect_given_back(workplace, ["endless", *REST])


def test_a_given_up_handler_is_run_again_by_the_next_worker(workplace: Workplace, tmp_path: Path) -> None:
    release = tmp_path / "release"
    workplace.send("block", "endless")
    with workplace.start("sync", "--grace", "0", release=release) as worker:
        workplace.wait_for_run()
        worker.signal(signal.SIGTERM)
        worker.wait()
    release.touch()
    with workplace.start("sync", release=release):
        wait_until(lambda: not workplace.pending())
    assert workplace.attempts() == {"endless": 1}
    workplace.expect_nothing_left()
