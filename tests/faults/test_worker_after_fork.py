"""A worker that was made on an engine in use, and runs in processes that were forked since (D12)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.books import TABLES, Event, Journal, read_books
from tests.outcomes import Ledger
from tests.processes import Child

EVENTS = 200


@pytest.mark.parametrize("inbox", ["sync", "asynchronous"])
def test_a_worker_that_was_made_before_a_fork(database_url: str, project_root: Path, inbox: str) -> None:
    ledger, journal = Ledger(database_url), Journal()
    for table in TABLES:
        ledger.execute(table)
    events = [Event(f"e{number}", f"r{number % 5}", number) for number in range(EVENTS)]
    for event in events:
        journal.send(event)
        journal.acknowledge(event)
    ledger.record(*[event.body for event in events])
    with Child("-m", "tests.faults.forked_workers", database_url, inbox, cwd=project_root) as child:
        told = child.wait_for_output("children ")
        assert told == "children [0, 0, 0], connections kept: True"
        assert child.wait() == 0
        assert "Traceback" not in child.output
    books = read_books(database_url, journal)
    assert books.balanced, str(books)
    assert books.pending == []
    assert books.dead == {}
    assert ledger.failures() == []
    ledger.engine.dispose()
