"""`hookledger replay`, `replays` and `backfill` as a person on call and a script use them."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hookledger.cli import app
from tests.end_to_end.command import COMMAND, HANDLER, HOOKS, Project, assert_told_in_one_sentence
from tests.outcomes import Ledger, document
from tests.processes import wait_until


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """Two settled deliveries, three dead ones, one that is scheduled: ids 1 to 6."""
    ledger = Ledger(database_url)
    ledger.record(*[document(f"e{number}", "r", 1, type="charge.made") for number in range(1, 7)])
    ledger.execute("UPDATE hookledger.deliveries SET source = 'stripe'")
    ledger.execute(
        "WITH gone AS (DELETE FROM hookledger.pending WHERE delivery_id < 3 RETURNING delivery_id)"
        " INSERT INTO hookledger.effects (source, event_id, handler, delivery_id, outcome) SELECT source, event_id,"
        " 'add_revenue', id, 'applied' FROM gone JOIN hookledger.deliveries ON id = delivery_id"
    )
    bury(ledger, "delivery_id BETWEEN 3 AND 5")
    ledger.execute(
        "UPDATE hookledger.pending SET due_at = '2031-05-04 13:58:00+00', attempts = 1, last_error = 'later'"
    )
    yield ledger
    ledger.engine.dispose()


def bury(ledger: Ledger, which: str) -> None:
    ledger.execute(
        f"WITH gone AS (DELETE FROM hookledger.pending WHERE {which} RETURNING delivery_id)"
        " INSERT INTO hookledger.dead_letters (delivery_id, attempts, reason, error, fingerprint)"
        " SELECT delivery_id, 3, 'failed', 'x', 'fffffffffffffff' || delivery_id % 2 FROM gone"
    )


@pytest.fixture
def project(tmp_path: Path, database_url: str) -> Project:
    """A project whose handler takes charges."""
    project = Project(tmp_path, database_url)
    project.write("hooks.py", HOOKS + HANDLER)
    return project


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(database_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process, which takes a fraction of the time."""
    monkeypatch.setenv("DATABASE_URL", database_url)

    def command(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        status = app.run(arguments)
        captured = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, status, captured.out, captured.err)

    return command


def at_terminal(project: Project, answer: str, *arguments: str) -> tuple[int, str]:
    """The exit status and the output of a command at a terminal at which a person writes an answer."""
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [str(COMMAND), *arguments],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        cwd=project.folder,
        env=project.environment({"TERM": "dumb", "COLUMNS": "200", "NO_COLOR": "1"}),
    )
    os.close(inner)
    written = b""
    try:
        asked = False
        while more := os.read(outer, 65536):
            written += more
            if not asked and (b"[y/N]" in written or b"to go on" in written):
                asked = True
                os.write(outer, f"{answer}\n".encode())
    except OSError:
        pass
    finally:
        os.close(outer)
    return process.wait(60), written.decode()


def pending(ledger: Ledger) -> set[str]:
    return set(ledger.pending()) - {"e6"}


def test_a_dry_run_shows_the_plan_and_changes_nothing(project: Project, ledger: Ledger, run: Run) -> None:
    done = run("replay", "--dry-run")
    assert done.returncode == 0
    assert "3 selected: 3 dead (to be revived), 0 settled" in done.stdout
    assert "2 settled ones left alone" in done.stdout
    assert "1 pending ones left alone" in done.stdout
    assert "later arrivals (above 6) are not in it" in done.stdout
    told = json.loads(
        project.run("replay", "--include-settled", "--dry-run", "--json", "--inbox", "hooks:inbox").stdout
    )
    assert {name: told["plan"][name] for name in ("total", "dead", "settled", "run", "skipped")} == {
        "total": 5,
        "dead": 3,
        "settled": 2,
        "run": 3,
        "skipped": 2,
    }
    assert pending(ledger) == set()
    assert ledger.value("SELECT count(*) FROM hookledger.replays") == 0


def test_without_a_terminal_it_wants_yes(project: Project, ledger: Ledger, run: Run) -> None:
    done = run("replay")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: this changes the ledger")
    assert "--yes" in done.stderr
    assert pending(ledger) == set()
    done = run(
        "replay",
        "--fingerprint",
        "fffffffffffffff1",
        "--yes",
        "--most-pending",
        "0",
        "--reason",
        "the bug",
        "--who",
        "ann",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["state"], told["queued"], told["who"], told["reason"]) == ("done", 2, "ann", "the bug")
    assert pending(ledger) == {"e3", "e5"}
    (listed,) = json.loads(run("replays", "--json").stdout)["replays"]
    assert listed == told
    assert run("replays", "-q").stdout == "1\n"
    assert "fingerprint=fffffffffffffff1" in run("replays").stdout


def test_at_a_terminal_it_asks(project: Project, ledger: Ledger) -> None:
    status, shown = at_terminal(project, "n", "replay")
    assert status == 1
    assert "Make 3 deliveries pending again? [y/N]" in shown
    assert "nothing was changed" in shown
    assert pending(ledger) == set()
    status, shown = at_terminal(project, "y", "replay", "--most-pending", "0")
    assert status == 0, shown
    assert pending(ledger) == {"e3", "e4", "e5"}


def test_b057_each_delivery_that_is_named_is_told_of(project: Project, ledger: Ledger, run: Run) -> None:
    ledger.execute("UPDATE hookledger.pending SET last_error = NULL")
    done = run("replay", "--ids-from", "-", "--yes", "--most-pending", "0", stdin="1\n3\n6\n99\n")
    assert done.returncode == 0, done.stderr
    assert "delivery 1 is settled: left alone (--include-settled)" in done.stderr
    assert "delivery 3 is dead" in done.stderr
    assert "delivery 6 is in progress (attempt 1): left alone" in done.stderr
    assert "delivery 99 is not in the ledger" in done.stderr
    assert pending(ledger) == {"e3"}
    ledger.execute("UPDATE hookledger.pending SET last_error = 'later' WHERE delivery_id = 6")
    done = run("replay", "6", "--yes")
    assert done.returncode == 0
    assert "delivery 6 is scheduled for 2031-05-04 13:58:00 UTC: left alone, it runs by itself" in done.stderr
    assert "nothing to do" in done.stderr
    assert_told_in_one_sentence(run("replay", "evt_1"), 2, "no id of a delivery", "--event-id")


def test_forgetting_effects_wants_a_word(project: Project, ledger: Ledger, run: Run) -> None:
    command = ("replay", "1", "--forget-effects", "add_revenue", "--most-pending", "0")
    done = run(*command, "--yes")
    assert done.returncode == 2
    assert "warning: add_revenue will run a second time for 1 delivery whose" in done.stderr
    assert "give --confirm add_revenue" in done.stderr
    done = run(*command, "--yes", "--confirm", "yes")
    assert done.returncode == 2
    status, shown = at_terminal(project, "yes", *command)
    assert (status, "nothing was changed" in shown) == (1, True)
    assert len(ledger.outcomes()) == 2
    assert run(*command, "--confirm", "add_revenue").returncode == 0
    assert set(ledger.outcomes()) == {("e2", "add_revenue")}
    assert pending(ledger) == {"e1"}
    (listed,) = json.loads(run("replays", "--json").stdout)["replays"]
    assert (listed["kind"], listed["filter"]["handler"]["handler"]) == ("forget", "add_revenue")


def test_b055_interrupted_it_ends_after_the_batch_and_is_resumed(project: Project, ledger: Ledger, run: Run) -> None:
    with project.start("replay", "--yes", "--most-pending", "1") as child:
        wait_until(lambda: len(pending(ledger)) == 1)
        child.signal(signal.SIGINT)
        assert child.wait() == 130
        assert "`hookledger replay --resume 1` goes on with it" in child.output
        assert "replay 1 stopped: 1 made pending" in child.output
    assert_told_in_one_sentence(run("replay", "--resume", "1", "--source", "x"), 2, "leave out the ids")
    assert_told_in_one_sentence(run("replay", "--resume", "7"), 1, "there is no replay 7")
    done = run("replay", "--resume", "1", "--most-pending", "0")
    assert done.returncode == 0, done.stderr
    assert pending(ledger) == {"e3", "e4", "e5"}
    assert ledger.value("SELECT count(*) FROM hookledger.replayed") == 3


def test_b055_killed_it_is_resumed_and_stopped_from_elsewhere(project: Project, ledger: Ledger, run: Run) -> None:
    with project.start("replay", "--yes", "--most-pending", "1") as child:
        wait_until(lambda: len(pending(ledger)) == 1)
        child.kill()
    done = run("replay", "--yes")
    assert done.returncode == 1
    assert "replay 1 of the same deliveries has not ended" in done.stderr
    with project.start("replay", "--resume", "1") as child:
        wait_until(lambda: "begins" in child.output)
        stopped = run("replays", "stop", "1")
        assert stopped.returncode == 0, stopped.stderr
        assert child.wait() == 5
    assert_told_in_one_sentence(run("replays", "stop", "1"), 1, "does not run")
    assert ledger.value("SELECT count(*) FROM hookledger.replayed") <= 3


def test_a_backfill_needs_the_inbox_and_queues_what_lacks_the_handler(project: Project, ledger: Ledger) -> None:
    new = '\n\n@inbox.accumulate("stripe", "charge.*")\ndef count(delivery, tx):\n    pass\n'
    project.write("hooks.py", HOOKS + HANDLER + new)
    assert_told_in_one_sentence(project.run("backfill", "count"), 2, "--inbox MODULE:INBOX")
    assert_told_in_one_sentence(project.run("backfill", "other", "--inbox", "hooks:inbox"), 2, "add_revenue, count")
    shown = project.run("backfill", "count", "--inbox", "hooks:inbox", "--since", "30d", "--dry-run").stdout
    assert "2 selected: 0 dead (to be revived), 2 settled" in shown
    done = project.run("backfill", "count", "--inbox", "hooks:inbox", "--yes", "--most-pending", "0")
    assert done.returncode == 0, done.stderr
    assert pending(ledger) == {"e1", "e2"}


def test_the_ledger_of_the_inbox_is_meant(
    project: Project, ledger: Ledger, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("elsewhere.py", f"{HOOKS}{HANDLER}\ninbox.schema = 'My-Hooks'\n")
    monkeypatch.chdir(project.folder)
    monkeypatch.syspath_prepend(project.folder)
    assert run("db", "upgrade", "--schema", "My-Hooks").returncode == 0
    for command in (("backfill", "add_revenue"), ("replay", "--state", "settled"), ("prune", "--payloads", "30d")):
        given = (*command, "--inbox", "elsewhere:inbox", "--dry-run")
        done = run(*given)
        assert done.returncode == 0, done.stderr
        assert "0 selected" in done.stdout or "payloads" in done.stdout
        assert_told_in_one_sentence(run(*given, "--schema", "other"), 2, "'My-Hooks', not in 'other'")
    told = run("pause", "add_revenue", "--handler", "--schema", "My-Hooks").stderr
    assert "`hookledger resume add_revenue --schema My-Hooks`" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--state", "lost"), "is no state"),
        (("--state", "pending"), "run by themselves"),
        (("--rate", "fast"), "write 200/s"),
        (("--max-failures", "many"), "write 5% or 10"),
        (("--since", "noon"), "is no time"),
    ],
)
def test_what_cannot_work_is_told(arguments: tuple[str, ...], words: str, run: Run) -> None:
    assert_told_in_one_sentence(run("replay", "--dry-run", *arguments), 2, words)


def test_a_rebuild_shows_what_differs(project: Project, ledger: Ledger) -> None:
    """The stored documents say nothing of an amount, so it is what the handler makes of them."""
    counting = '\n\n@inbox.accumulate("stripe", "charge.*")\ndef count(delivery, tx):\n    return {"events": 1}\n'
    project.write("hooks.py", HOOKS + counting)
    assert_told_in_one_sentence(project.run("rebuild", "count", "--into", "rebuilt"), 2, "--inbox MODULE:INBOX")
    unasked = project.run("rebuild", "count", "--into", "rebuilt", "--inbox", "hooks:inbox")
    assert_told_in_one_sentence(unasked, 2, "give --yes to do it")
    assert "--dry-run" not in unasked.stderr
    command = ("rebuild", "count", "--into", "rebuilt", "--inbox", "hooks:inbox", "--diff", "--yes")
    done = project.run(*command, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["deliveries"], told["failed"]) == (6, 0)
    (one,) = told["differences"]
    assert (one["resource"], one["live"], one["shadow"]["state"]) == ("r", None, {"events": 6})
    assert_told_in_one_sentence(project.run(*command), 2, "holds a ledger already")
