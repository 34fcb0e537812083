"""Workers that are killed at any moment: each event has its effect once (D6, B045)."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack

import pytest

from tests.concurrency.workers import INBOXES, Workplace
from tests.outcomes import document
from tests.processes import Child, wait_until

EVENTS = 5000
KILLS = 12
ROWS = [f"row-{number}" for number in range(5)]


@pytest.mark.parametrize("inbox", INBOXES)
def test_b045_each_event_is_added_once_however_often_workers_are_killed(inbox: str, workplace: Workplace) -> None:
    chance = random.Random(f"45 {inbox}")
    workplace.make_totals(ROWS)
    sent = {f"e{number}": chance.choice(ROWS) for number in range(EVENTS)}
    workplace.record(*[document(event, row, type="add") for event, row in sent.items()])
    with ExitStack() as stack:

        def start() -> Child:
            options = ("--slots", str(chance.randint(1, 3)), "--batch", str(chance.choice([1, 10, 40, 100])))
            return stack.enter_context(workplace.start(inbox, *options))

        workers = [start(), start()]
        for _ in range(KILLS):
            victim = chance.randrange(2)
            workers[victim].wait_for_output("worker ready")
            wanted = workplace.settled() + chance.randint(1, EVENTS // (3 * KILLS))
            wait_until(lambda wanted=wanted: workplace.settled() >= wanted)  # type: ignore[misc]
            workers[victim].kill()
            workers[victim] = start()
        assert workplace.settled() < EVENTS, "the last one was killed in the middle of the work"
        wait_until(lambda: not workplace.pending())
        assert all(worker.running for worker in workers)
        assert [worker.output for worker in workers if "Traceback" in worker.output] == []
    assert workplace.totals() == Counter(sent.values())
    assert workplace.outcomes_of("add") == dict.fromkeys(sent, "applied")
    workplace.expect_nothing_left()
