"""Workers of two releases on one ledger: what the older one does not know is not settled for good (D11)."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.concurrency.workers import INBOXES, Workplace
from tests.outcomes import document
from tests.processes import wait_until

EVENTS = [f"e{number}" for number in range(60)]
NEWER = 3


@pytest.mark.parametrize("inbox", INBOXES)
def test_what_an_older_worker_ignored_is_applied_once_by_newer_ones(inbox: str, workplace: Workplace) -> None:
    workplace.make_totals(["row"])
    workplace.record(*[document(event, "row", type="add") for event in EVENTS])
    workplace.send("note", "known")
    with workplace.start(inbox, module="older_hooks") as older:
        wait_until(lambda: not workplace.pending())
        assert older.running
    ignored = {(event, "-"): "ignored" for event in EVENTS}
    assert workplace.outcomes() == {**ignored, ("known", "note"): "applied"}
    workplace.check()
    with ExitStack() as stack:
        # All at once: each looks for what was ignored.
        newer = [stack.enter_context(workplace.start(inbox, "--batch", "7")) for _ in range(NEWER)]
        wait_until(lambda: len(workplace.outcomes_of("add")) == len(EVENTS))
        workplace.check()
        for worker in newer:
            worker.wait_for_output("worker ready")
        wait_until(lambda: not workplace.pending())
        assert sum(worker.output.count("that were ignored have a handler now") for worker in newer) == 1
        assert [worker.output for worker in newer if "Traceback" in worker.output or not worker.running] == []
    assert workplace.totals() == {"row": len(EVENTS)}
    assert workplace.outcomes_of("add") == dict.fromkeys(EVENTS, "applied")
    # That they were ignored once stays on record.
    assert workplace.outcomes_of("-") == dict.fromkeys(EVENTS, "ignored")
    assert workplace.attempts() == {"known": 1}
    workplace.expect_nothing_left()


@pytest.mark.parametrize("inbox", INBOXES)
def test_a_worker_that_is_told_not_to_leaves_what_was_ignored(inbox: str, workplace: Workplace) -> None:
    workplace.send("add", "e1")
    with workplace.start(inbox, module="older_hooks"):
        wait_until(lambda: not workplace.pending())
    with workplace.start(inbox, "--revive-ignored", "0"):
        for event in ("n1", "n2"):
            workplace.send("note", event)
            wait_until(lambda: not workplace.pending())
    assert workplace.outcomes_of("add") == {}
    assert workplace.outcomes_of("-") == {"e1": "ignored"}
    workplace.check()
