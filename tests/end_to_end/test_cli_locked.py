"""Somebody holds a lock on the ledger: commands that read, and `resume`, say so and end; those that watch go on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, text

from hookledger.embedded import EmbeddedPostgres
from hookledger.ledger.schema import VERSION_TABLE
from hookledger.operate import locked
from tests.outcomes import SHOP, Ledger, document
from tests.processes import Child, wait_until
from tests.unit.cli.calling import Ended, call

SCHEMA = "hookledger"
WAITING = "SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'hookledger.pending'::regclass"
WITH_LITTLE_PATIENCE = """
import sys
from hookledger.cli.app import run
from hookledger.operate import locked
locked.LOCK_SECONDS = 0.2
sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture
def ledger(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A ledger with nothing in it, which the commands of this process take; they have little patience."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setattr(locked, "LOCK_SECONDS", 0.1)
    ledger = Ledger(database_url)
    yield ledger
    ledger.engine.dispose()


@contextmanager
def held(ledger: Ledger, table: str) -> Iterator[int]:
    """Somebody has locked a table; the number of their process. They are cut off should a command wait without end."""
    with ledger.transaction() as connection:
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '20s'"))
        connection.execute(text(f"LOCK TABLE hookledger.{table} IN ACCESS EXCLUSIVE MODE"))
        yield connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        assert connection.execute(text("SELECT true")).scalar_one()


def assert_told(ended: Ended, *words: str) -> None:
    assert (ended.status, ended.stdout) == (1, ""), ended
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    for word in words:
        assert word in ended.stderr


@pytest.mark.parametrize(
    ("table", "arguments"),
    [
        ("pending", ["status"]),
        ("effects", ["status", "--exact", "--json"]),
        ("deliveries", ["deliveries"]),
        ("effects", ["deliveries", "--ndjson", "--limit", "20000"]),
        ("pending", ["deliveries", "-q", "--state", "pending"]),
        ("failures", ["show", "1"]),
        ("deliveries", ["show", SHOP, "e1"]),
        ("dead_letters", ["dead"]),
        ("pauses", ["pause"]),
        ("pauses", ["pause", SHOP]),
        ("deliveries", ["pause", SHOP]),
        ("pauses", ["resume", SHOP]),
        ("pauses", ["resume", SHOP, "--source"]),
        ("pending", ["drain", "--timeout", "0"]),
        ("quarantine", ["quarantine"]),
        ("quarantine", ["quarantine", "-q"]),
        ("quarantine", ["quarantine", "show", "1"]),
        ("quarantine", ["quarantine", "discard", "--all", "--dry-run"]),
        ("replays", ["replays"]),
        ("dead_letters", ["replay", "--dry-run", "--json"]),
        ("effects", ["replay", "1", "--dry-run", "--json", "--include-settled"]),
        (VERSION_TABLE, ["db", "current"]),
        (VERSION_TABLE, ["db", "check"]),
        *[
            (VERSION_TABLE, arguments)
            for arguments in (
                ["status"],
                ["status", "--watch"],
                ["drain"],
                ["replay", "--dry-run"],
                ["prune", "--payloads", "30d", "--dry-run"],
                ["erase", "--id", "1", "--dry-run"],
            )
        ],
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
def test_who_holds_a_table_is_told(ledger: Ledger, capsys: Any, table: str, arguments: list[str]) -> None:
    ledger.record(document("e1"))
    with held(ledger, table) as pid:
        ended = call(capsys, *arguments)
    assert_told(ended, f"process {pid} (role ", f"has locked hookledger.{table}", f"SELECT pg_terminate_backend({pid})")


def test_who_waits_for_a_table_and_holds_up_others_is_told(ledger: Ledger, capsys: Any) -> None:
    with ThreadPoolExecutor(1) as threads, ledger.transaction() as reading:
        reading.execute(text("SET LOCAL idle_in_transaction_session_timeout = '20s'"))
        reading.execute(text("SELECT FROM hookledger.pending"))
        waiting = threads.submit(ledger.execute, "LOCK TABLE hookledger.pending IN ACCESS EXCLUSIVE MODE")
        pid = wait_until(lambda: ledger.value(WAITING))
        ended = call(capsys, "status")
        reading.rollback()
        waiting.result()
    assert_told(ended, f"process {pid} (role ", "waits to lock hookledger.pending", f"pg_terminate_backend({pid})")
    assert call(capsys, "status").status == 0


def test_a_prepared_transaction_is_told(ledger: Ledger, engine: Engine) -> None:
    """The server of the tests knows none, so only how it is said is looked at."""
    rows = text(
        "SELECT NULL AS pid, true AS granted, false AS only_rows, 'pending' AS name, 3 AS number, '-' AS role,"
        " '-' AS program, '-' AS state"
    )
    with engine.connect() as connection:
        told = locked._in_words(list(connection.execute(rows)), SCHEMA)
    assert told.startswith("a prepared transaction has locked hookledger.pending and 2 more: ")
    assert "ROLLBACK PREPARED" in told
    assert "pg_terminate_backend" not in told


def test_where_nobody_is_found_it_is_to_be_run_again(ledger: Ledger, engine: Engine) -> None:
    ledger.execute("INSERT INTO hookledger.pauses (kind, name, who) VALUES ('source', 'shop', 'anna')")
    row = text("SELECT FROM hookledger.pauses FOR UPDATE")
    with ledger.transaction() as other:
        other.execute(text("SET LOCAL idle_in_transaction_session_timeout = '20s'"))
        other.execute(row)
        with (
            pytest.raises(locked.Locked, match="run this again"),
            locked.reading(engine, SCHEMA) as reader,
            reader.connect() as connection,
        ):
            connection.execute(row)
        other.execute(row)


def test_resume_says_what_it_has_done_when_the_rest_is_locked(ledger: Ledger, capsys: Any) -> None:
    assert call(capsys, "pause", SHOP, "--source").status == 0
    with held(ledger, "pending"):
        ended = call(capsys, "resume", SHOP)
    assert_told(ended, f"the source {SHOP} is resumed, but not all that waited for it is due yet: ", "run this again")
    assert "was not paused" in call(capsys, "resume", SHOP, "--source").stderr


@pytest.mark.parametrize(
    ("arguments", "then", "status"),
    [(["status", "--watch", "--every", "0.1"], "No deliveries yet.", 130), (["drain"], "drained", 0)],
)
def test_who_watches_is_told_and_goes_on(ledger: Ledger, arguments: list[str], then: str, status: int) -> None:
    with Child("-c", WITH_LITTLE_PATIENCE, *arguments) as watching:
        with held(ledger, "pending") as pid:
            line = watching.wait_for_output("has locked hookledger.pending")
            assert f"process {pid} (" in line
        watching.wait_for_output(then)
        if status:
            watching.signal(signal.SIGINT)
        assert watching.wait() == status
        assert "Traceback" not in watching.output


def test_the_status_is_watched_beyond_a_restart(own_server: EmbeddedPostgres, own_database_url: str) -> None:
    with Child(
        "-c", WITH_LITTLE_PATIENCE, "status", "--watch", "--every", "0.1", env={"DATABASE_URL": own_database_url}
    ) as watching:
        watching.wait_for_output("No deliveries yet.")
        own_server.halt()
        watching.wait_for_output("PostgreSQL does not answer")
        seen = len(watching.output)
        own_server.start()
        wait_until(lambda: "No deliveries yet." in watching.output[seen:])
        watching.signal(signal.SIGINT)
        assert watching.wait() == 130
