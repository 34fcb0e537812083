"""Many slots on few hot rows: whatever deadlocks there are, everything is settled and nobody is charged (D8, B042)."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack

import pytest

from tests.concurrency.workers import INBOXES, Workplace
from tests.outcomes import document
from tests.processes import wait_until

EVENTS = 1000
"""In a round."""
ROUNDS = 20
"""After each, it is looked whether a deadlock happened; one is enough."""
OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'hookledger worker'
"""
RESOURCES = [f"r{number}" for number in range(5)]
ACCOUNTS = [f"account-{number}" for number in range(5)]
PROCESSES = {"two processes": (4, 4), "four processes": (1, 1, 1, 1)}
"""The slots of each. In one process alone, slots whose handlers wait for nothing take turns."""


@pytest.mark.parametrize("processes", PROCESSES)
@pytest.mark.parametrize("inbox", INBOXES)
def test_b042_two_handlers_on_hot_resources_settle_everything_at_the_first_attempt(
    inbox: str, processes: str, workplace: Workplace
) -> None:
    """The snapshot handler writes a row of the resource, the other one a row that crosses the resources, so that
    transactions do wait for each other in circles."""
    # PostgreSQL looks for deadlocks only after this time; with the usual second the test would mostly wait.
    workplace.execute(f"ALTER DATABASE \"{workplace.engine.url.database}\" SET deadlock_timeout = '20ms'")
    chance = random.Random(f"42 {inbox} {processes}")
    workplace.make_totals(ACCOUNTS)
    accounts: dict[str, str] = {}
    resources: dict[str, str] = {}
    versions: dict[str, int] = {}
    ids: list[int] = []
    for _ in range(ROUNDS):
        lot = {f"e{number}": chance.choice(ACCOUNTS) for number in range(len(accounts), len(accounts) + EVENTS)}
        accounts |= lot
        resources |= {event: chance.choice(RESOURCES) for event in lot}
        versions |= {event: chance.randint(1, EVENTS // 4) for event in lot}
        ids += workplace.record(
            *[
                document(event, resources[event], versions[event], type="hot", account=account)
                for event, account in lot.items()
            ]
        )
        with ExitStack() as stack:
            workers = [
                stack.enter_context(workplace.start(inbox, "--slots", str(slots), "--batch", "4"))
                for slots in PROCESSES[processes]
            ]
            wait_until(lambda: not workplace.pending())
            assert [worker.output for worker in workers if not worker.running] == []
            assert [worker.output for worker in workers if "Traceback" in worker.output] == []
        # A server process counts its deadlocks for others to see at its end. Whether there are any is chance.
        wait_until(lambda: workplace.value(OTHERS) == 0)
        if workplace.value("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") > 0:
            break
    else:
        pytest.fail(f"no deadlock in {ROUNDS} rounds: the test does not test what it is for")
    # The highest version, and of those the one that arrived last, which has the highest id.
    in_order = sorted(zip(accounts, ids, strict=True), key=lambda event: (versions[event[0]], event[1]))
    newest = {resources[event]: event for event, _ in in_order}
    assert workplace.failures() == []
    workplace.expect_nothing_left()
    assert workplace.attempts("cross") == dict.fromkeys(accounts, 1)
    assert workplace.totals() == Counter(accounts.values())
    outcomes = workplace.outcomes_of("keep")
    assert set(outcomes) == set(accounts)
    applied = workplace.attempts("keep")
    assert applied == {event: 1 for event, outcome in outcomes.items() if outcome == "applied"}
    kept = {row.resource: row.event_id for row in workplace.execute("SELECT resource, event_id FROM kept")}
    assert kept == newest
    assert {resource: state.state["event"] for resource, state in workplace.states("keep").items()} == newest
