"""Workers that are killed at any moment: each event has its effect once (D6, B045)."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack

import pytest

from tests.concurrency.workers import INBOXES, Workplace
from tests.outcomes import document
from tests.processes import Child, wait_until

EVENTS = 4000
KILLS = 10
LEAST_IN_WORK = 6
RUN = 50
ROWS = [f"row-{number}" for number in range(5)]


@pytest.mark.parametrize("inbox", INBOXES)
def test_b045_each_event_is_added_once_however_often_workers_are_killed(inbox: str, workplace: Workplace) -> None:
    chance = random.Random(f"45 {inbox}")
    workplace.make_totals(ROWS)
    # In runs: transactions that take the rows in any order would mostly wait for PostgreSQL to find deadlocks.
    sent = {f"e{number}": ROWS[number // RUN % len(ROWS)] for number in range(EVENTS)}
    documents = [document(event, row, type="add") for event, row in sent.items()]
    part = EVENTS // (KILLS + 1) + 1
    with ExitStack() as stack:

        def start() -> Child:
            options = ("--slots", str(chance.randint(1, 3)), "--batch", str(chance.choice([1, 10, 40, 100])))
            return stack.enter_context(workplace.start(inbox, *options))

        workers = [start(), start()]
        killed_in_work = 0
        for number in range(KILLS):
            victim = chance.randrange(2)
            workers[victim].wait_for_output("worker ready")
            wanted = workplace.settled() + chance.randint(1, part // 2)
            workplace.record(*documents[number * part : (number + 1) * part])
            wait_until(lambda wanted=wanted: workplace.settled() >= wanted)  # type: ignore[misc]
            workers[victim].kill()
            killed_in_work += len(workplace.pending()) > 0
            workers[victim] = start()
        workplace.record(*documents[KILLS * part :])
        wait_until(lambda: not workplace.pending())
        assert [worker.output for worker in workers if not worker.running] == []
        assert [worker.output for worker in workers if "Traceback" in worker.output] == []
    assert killed_in_work >= LEAST_IN_WORK
    assert workplace.totals() == Counter(sent.values())
    assert workplace.outcomes_of("add") == dict.fromkeys(sent, "applied")
    workplace.expect_nothing_left()
