"""`hookledger status`: what it counts, how exactly, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select, text

from hookledger.ledger.schema import tables
from hookledger.ledger.status import (
    BOUND,
    Precision,
    dead_by_source,
    newest_arrival,
    pending_by_source,
    read_status,
    redeliveries_by_source,
)
from tests.end_to_end.command import Project, assert_told_in_one_sentence

SCHEMA = "hookledger"


@pytest.fixture
def project(tmp_path: Path, database_url: str) -> Project:
    """An empty folder, and an empty ledger."""
    return Project(tmp_path, database_url)


def fill(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def deliveries(first: int, last: int, source: str = "stripe") -> str:
    return (
        "INSERT INTO hookledger.deliveries (id, source, event_id, event_type, payload_id, received_at, body_digest) "
        f"OVERRIDING SYSTEM VALUE SELECT i, '{source}', 'e' || i, 't', i, now() - interval '1 minute', '' "
        f"FROM generate_series({first}, {last}) AS i"
    )


def effects(first: int, last: int, outcome: str) -> str:
    return (
        "INSERT INTO hookledger.effects (source, event_id, handler, delivery_id, outcome) "
        f"SELECT source, event_id, 'h', id, '{outcome}' FROM hookledger.deliveries WHERE id BETWEEN {first} AND {last}"
    )


def pending(first: int, last: int, due: str = "now()", attempts: int = 0, error: str = "NULL") -> str:
    return (
        "INSERT INTO hookledger.pending (delivery_id, due_at, attempts, last_error) "
        f"SELECT i, {due}, {attempts}, {error} FROM generate_series({first}, {last}) AS i"
    )


def dead(first: int, last: int, reason: str) -> str:
    return (
        "INSERT INTO hookledger.dead_letters (delivery_id, attempts, reason, error, fingerprint) "
        f"SELECT i, 3, '{reason}', 'x', 'f' FROM generate_series({first}, {last}) AS i"
    )


def redeliveries(first: int, last: int, differs: str = "false") -> str:
    return (
        "INSERT INTO hookledger.redeliveries (delivery_id, received_at, headers, differs) "
        f"SELECT i, now(), '[]', {differs} FROM generate_series({first}, {last}) AS i"
    )


SMALL = (
    deliveries(1, 10),
    deliveries(11, 20, "billing"),
    effects(1, 4, "applied"),
    effects(5, 5, "stale"),
    effects(11, 13, "ignored"),
    pending(6, 7, "now() - interval '90 seconds'"),
    pending(8, 8, "now() + interval '1 hour'", 2, "'ValueError'"),
    pending(14, 14, "now() + interval '2 hours'", 1),
    dead(9, 10, "failed"),
    dead(15, 15, "crashed"),
    redeliveries(1, 2),
    redeliveries(11, 11, "true"),
)


def document(project: Project, *arguments: str) -> dict[str, Any]:
    done = project.run("status", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def test_an_empty_ledger(project: Project) -> None:
    done = project.run("status")
    assert (done.returncode, done.stdout, done.stderr) == (0, "No deliveries yet.\n", "")
    read = document(project)
    assert read["last_received_at"] is None
    assert read["sources"] == {}
    assert read["pending"]["oldest_due_at"] is None


def test_what_was_imported_is_no_arrival(project: Project, engine: Engine) -> None:
    imported = "INSERT INTO hookledger.imported (delivery_id, origin) SELECT id, 'file' FROM hookledger.deliveries"
    fill(engine, deliveries(1, 2), pending(1, 2, "now()"), imported)
    assert document(project)["last_received_at"] is None
    assert "none was received since" in project.run("status").stdout
    fill(engine, deliveries(3, 3), "UPDATE hookledger.deliveries SET received_at = '2031-05-04 12:00+00' WHERE id = 3")
    fill(engine, deliveries(4, 4), f"{imported} WHERE id = 4")
    assert document(project)["last_received_at"] == "2031-05-04T12:00:00+00:00"


def test_every_number_as_json(project: Project, engine: Engine) -> None:
    fill(engine, *SMALL)
    read = document(project)
    assert read["schema"] == SCHEMA
    billing, stripe = read["sources"]["billing"], read["sources"]["stripe"]
    assert set(read["sources"]) == {"billing", "stripe"}
    assert read["settled"] == {
        "count": 8,
        "by_outcome": {"applied": 4, "ignored": 3, "stale": 1},
        "precision": "exact",
    }
    assert stripe["settled"]["by_outcome"] == {"applied": 4, "stale": 1}
    assert billing["settled"]["by_outcome"] == {"ignored": 3}
    assert read["dead"] == {"count": 3, "by_reason": {"crashed": 1, "failed": 2}, "precision": "exact"}
    assert billing["dead"]["by_reason"] == {"crashed": 1}
    assert read["redeliveries"] == {"count": 3, "differing": 1, "precision": "exact"}
    assert billing["redeliveries"] == {"count": 1, "differing": 1, "precision": "exact"}
    numbers = ("count", "due", "retrying", "claimed")
    assert [read["pending"][name] for name in numbers] == [4, 2, 1, 1]
    assert [stripe["pending"][name] for name in numbers] == [3, 2, 1, 0]
    assert [billing["pending"][name] for name in numbers] == [1, 0, 0, 1]
    assert read["pending"]["oldest_due_at"] == stripe["pending"]["oldest_due_at"]
    assert 90 <= read["pending"]["oldest_due_seconds"] < 1000
    assert billing["pending"]["oldest_due_seconds"] < 0


def test_for_a_person(project: Project, engine: Engine) -> None:
    fill(engine, *SMALL)
    lines = project.run("status").stdout.splitlines()
    assert lines[0].startswith("4 pending, the oldest due for 1 min 3")
    assert lines[0].endswith("; 3 dead (1 crashed, 2 failed).")
    assert lines[3:] == [
        "              all  billing  stripe",
        "pending         4        1       3",
        "  due now       2        0       2",
        "  retrying      1        0       1",
        "  claimed       1        1       0",
        "dead letters    3        1       2",
        "  crashed       1        1       0",
        "  failed        2        0       2",
        "settled         8        3       5",
        "  applied       4        0       4",
        "  ignored       3        3       0",
        "  stale         1        0       1",
        "redeliveries    3        1       2",
        "  differing     1        1       0",
    ]


def test_nothing_pending(project: Project, engine: Engine) -> None:
    fill(engine, deliveries(1, 1), effects(1, 1, "applied"))
    assert project.run("status").stdout.startswith("Nothing is pending; no dead letters.\n")


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (("--max-age", "3600"), 0, ""),
        (("--max-age", "60"), 6, "due for 1 min"),
        (("--max-dead", "3"), 0, ""),
        (("--max-dead", "2"), 6, "3 dead letters"),
        (("--max-age", "60", "--max-dead", "2"), 6, "due for 1 min"),
    ],
)
def test_as_a_health_check(
    project: Project, engine: Engine, arguments: tuple[str, ...], status: int, word: str
) -> None:
    fill(engine, *SMALL)
    done = project.run("status", *arguments)
    assert done.returncode == status
    assert done.stdout.startswith("4 pending")
    assert word in done.stderr
    assert done.stderr.count("\n") == (1 if status else 0)


def test_another_schema(project: Project, engine: Engine) -> None:
    assert project.run("db", "upgrade", "--schema", "second").returncode == 0
    fill(engine, *SMALL)
    assert document(project, "--schema", "second")["sources"] == {}
    assert_told_in_one_sentence(project.run("status", "--schema", "third"), 1, "third")


DEAD = 200_000


@pytest.fixture
def large(engine: Engine) -> Engine:
    """A ledger with more of everything than is counted one by one."""
    fill(
        engine,
        deliveries(1, 250_000),
        effects(1, 230_000, "applied"),
        effects(230_001, 250_000, "stale"),
        pending(1, BOUND + 500),
        pending(BOUND + 501, BOUND + 600, "now() - interval '1 hour'", 1, "'e'"),
        dead(20_001, 20_000 + DEAD, "failed"),
        redeliveries(1, BOUND + 1),
    )
    return engine


def test_b072_a_large_ledger_is_bounded_and_estimated(project: Project, large: Engine) -> None:
    with large.begin() as connection:
        status = read_status(connection, SCHEMA).total
    assert (status.pending.count, status.pending.precision) == (BOUND, Precision.AT_LEAST)
    assert status.pending.retrying == 100  # they are due first, so they are among those that were looked at
    assert (status.dead.count, status.dead.precision) == (BOUND, Precision.AT_LEAST)
    assert (status.redeliveries.count, status.redeliveries.precision) == (BOUND, Precision.AT_LEAST)
    assert status.settled.precision is Precision.ABOUT
    # 1,000 pages of some 2,300 are sampled: eight standard deviations are about a fifth.
    assert status.settled.count == pytest.approx(250_000, rel=0.2)
    assert status.settled.by_kind["applied"] > 5 * status.settled.by_kind["stale"]
    shown = project.run("status").stdout
    assert f"{BOUND:,}+ pending" in shown
    assert "~2" in shown


def test_a_large_ledger_counted_exactly(project: Project, large: Engine) -> None:
    read = document(project, "--exact")
    assert read["settled"] == {
        "count": 250_000,
        "by_outcome": {"applied": 230_000, "stale": 20_000},
        "precision": "exact",
    }
    assert read["pending"]["count"] == BOUND + 600
    assert read["dead"]["count"] == DEAD
    assert read["redeliveries"]["count"] == BOUND + 1


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A node of a plan and those below it."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def test_b072_bounded_counts_read_no_table_whole(large: Engine) -> None:
    t = tables(SCHEMA)
    with large.begin() as connection:
        connection.execute(text("ANALYZE hookledger.deliveries, hookledger.pending"))
        for build in (pending_by_source, dead_by_source, redeliveries_by_source):
            statement = build(t, BOUND + 1).compile(large, compile_kwargs={"literal_binds": True})
            (top,) = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}").scalar_one()
            scans = [node for node in nodes(top["Plan"]) if "Scan" in node["Node Type"]]
            assert scans
            assert max(node["Actual Rows"] * node["Actual Loops"] for node in scans) <= BOUND + 1, top


def test_the_last_arrival_is_found_from_the_end_also_where_most_was_imported(engine: Engine) -> None:
    imported = (
        "INSERT INTO hookledger.imported (delivery_id, origin) SELECT i, 'file' FROM generate_series(2, 50000) AS i"
    )
    fill(engine, deliveries(1, 50_000), imported, "ANALYZE hookledger.deliveries, hookledger.imported")
    with engine.begin() as connection:
        for limit, found in ((1_000, None), (None, 1)):
            statement = select(newest_arrival(tables(SCHEMA), limit))
            assert connection.scalar(statement) == found
            if limit is not None:
                text_of = statement.compile(engine, compile_kwargs={"literal_binds": True})
                (top,) = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {text_of}").scalar_one()
                scans = [node for node in nodes(top["Plan"]) if "Scan" in node["Node Type"]]
                assert max(node["Actual Rows"] * node["Actual Loops"] for node in scans) <= limit, top
