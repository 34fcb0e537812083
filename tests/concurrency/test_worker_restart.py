"""Workers outlive a restart of PostgreSQL and the loss of the connection that hears of new events (B039, B040)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hookledger.embedded import EmbeddedPostgres
from tests.concurrency.workers import INBOXES, Workplace
from tests.outcomes import document
from tests.processes import wait_until

EVENTS = 1500
RESTARTS = 3
ROWS = [f"row-{number}" for number in range(5)]


@pytest.fixture
def workplace(own_database_url: str) -> Iterator[Workplace]:
    """A ledger on a server that may be restarted."""
    workplace = Workplace(own_database_url)
    yield workplace
    workplace.engine.dispose()


def listeners(workplace: Workplace) -> set[int]:
    """The server processes of the connections that hear of new events."""
    rows = workplace.execute(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"
    )
    return {row.pid for row in rows}


@pytest.mark.parametrize("inbox", INBOXES)
def test_b040_a_restart_while_workers_are_idle(inbox: str, workplace: Workplace, own_server: EmbeddedPostgres) -> None:
    with workplace.start(inbox) as one, workplace.start(inbox) as another:
        for worker in (one, another):
            worker.wait_for_output("worker ready")
        wait_until(lambda: len(listeners(workplace)) == 2)
        for number in range(RESTARTS):
            own_server.restart("immediate")
            workplace.send("note", f"e{number}")
            wait_until(lambda number=number: f"e{number}" in workplace.attempts())  # type: ignore[misc]
        wait_until(lambda: len(listeners(workplace)) == 2)
        for worker in (one, another):
            assert worker.running
            assert "Traceback" not in worker.output
    assert workplace.attempts() == {f"e{number}": 1 for number in range(RESTARTS)}
    assert workplace.failures() == []
    workplace.expect_nothing_left()


@pytest.mark.parametrize("mode", ["immediate", "kill"])
@pytest.mark.parametrize("inbox", INBOXES)
def test_b040_a_restart_while_a_handler_runs(
    inbox: str, mode: str, workplace: Workplace, own_server: EmbeddedPostgres, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    workplace.send("block", "e1")
    with workplace.start(inbox, release=release) as worker:
        workplace.wait_for_run()
        # This commit brings the claim to the disk, which waits for none itself and would else be lost with the server.
        workplace.execute("CREATE TABLE flushed ()")
        assert workplace.pending()["e1"].attempts == 1
        if mode == "kill":
            own_server.kill()
            own_server.start()
        else:
            own_server.restart("immediate")
        release.touch()
        wait_until(lambda: workplace.outcomes())
        assert worker.running
        assert "Traceback" not in worker.output
    assert workplace.outcomes() == {("e1", "block"): "applied"}
    # The restart was nobody's fault: the attempt was refunded.
    assert workplace.attempts() == {"e1": 1}
    assert workplace.failures() == []
    workplace.expect_nothing_left()


@pytest.mark.parametrize("inbox", INBOXES)
def test_b040_restarts_under_load(inbox: str, workplace: Workplace, own_server: EmbeddedPostgres) -> None:
    workplace.make_totals(ROWS)
    sent = {f"e{number}": ROWS[number // 50 % len(ROWS)] for number in range(EVENTS)}
    documents = [document(event, row, type="add") for event, row in sent.items()]
    part = EVENTS // RESTARTS
    with ExitStack() as stack:
        workers = [stack.enter_context(workplace.start(inbox, "--slots", "2", "--batch", "20")) for _ in range(2)]
        # A worker that finds no server at its start says so and ends.
        wait_until(lambda: len(listeners(workplace)) == 2)
        for number in range(RESTARTS):
            before = workplace.settled()
            workplace.record(*documents[number * part : (number + 1) * part])
            wait_until(lambda before=before: workplace.settled() > before + part // 10)  # type: ignore[misc]
            own_server.restart("immediate")
        wait_until(lambda: not workplace.pending())
        assert [worker.output for worker in workers if not worker.running] == []
        assert [worker.output for worker in workers if "Traceback" in worker.output] == []
    assert workplace.totals() == Counter(sent.values())
    assert workplace.outcomes_of("add") == dict.fromkeys(sent, "applied")
    assert workplace.failures() == []
    workplace.expect_nothing_left()


@pytest.mark.parametrize("inbox", INBOXES)
def test_b039_a_lost_listener_is_made_again(inbox: str, workplace: Workplace) -> None:
    with workplace.start(inbox, "--slots", "1") as worker:
        (first,) = wait_until(lambda: listeners(workplace))
        workplace.execute("SELECT pg_terminate_backend(:pid)", pid=first)
        workplace.send("note", "e1")
        wait_until(lambda: "e1" in workplace.attempts())
        (second,) = wait_until(lambda: listeners(workplace) - {first})
        assert second != first
        workplace.send("note", "e2")
        wait_until(lambda: "e2" in workplace.attempts())
        assert worker.output.count("connection for hints was lost") == 1
        assert worker.running
        assert "Traceback" not in worker.output
    assert workplace.attempts() == {"e1": 1, "e2": 1}
    workplace.expect_nothing_left()
