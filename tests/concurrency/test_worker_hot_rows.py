"""Rows that many events of a batch add to, by handlers that are no snapshots: no lock of ours orders them (D8)."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.concurrency.workers import INBOXES, Workplace
from tests.outcomes import document
from tests.processes import wait_until

EVENTS = 2000
RESOURCES = [f"r{number}" for number in range(5)]


@pytest.mark.parametrize("inbox", INBOXES)
def test_rows_that_a_handler_writes_for_a_resource_cause_no_standstill(inbox: str, workplace: Workplace) -> None:
    """The usual batches, on rows that an accumulate handler adds to in the order of arrival; PostgreSQL looks for
    deadlocks after a second, so a worker that met one with each batch would come to nothing."""
    chance = random.Random(f"8 {inbox}")
    workplace.make_totals(RESOURCES)
    sent = {f"e{number}": chance.choice(RESOURCES) for number in range(EVENTS)}
    workplace.record(*[document(event, resource, type="add") for event, resource in sent.items()])
    with workplace.start(inbox, "--slots", "4"), workplace.start(inbox, "--slots", "4"):
        wait_until(lambda: not workplace.pending(), 30)
    assert workplace.totals() == Counter(sent.values())
    assert workplace.failures() == []
    workplace.expect_nothing_left()
