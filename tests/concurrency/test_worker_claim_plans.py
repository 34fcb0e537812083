"""The claim takes exactly what it was asked for, by the index, whatever the planner believes (D9, B037)."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from hookledger import RetryPolicy
from hookledger.ledger.arrays import bound
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import Buried, GivenBack, NewEffect, Parked, Position, Postponed
from hookledger.ledger.statements import claim_statement
from hookledger.worker.look import FullLooks, Look
from tests.outcomes import Ledger, document

REPOSITORY = Repository.of("hookledger")
POLICY = RetryPolicy()
ROWS = 20
MANY = 1_000_000
PASSING = 20_000
BATCH = 500
DUE_INDEX = "pending_due_at_delivery_id_idx"
TABLES = ("pending", "deliveries", "payloads")

SWITCHES = ("hashjoin", "mergejoin", "material", "hashagg", "sort")
PLANNERS = {
    "as it is": (),
    "nested loops only": SWITCHES,
    "no nested loops": ("nestloop",),
    "no indexes": ("indexscan", "indexonlyscan", "bitmapscan"),
    "nested loops without indexes": (*SWITCHES, "indexscan", "indexonlyscan", "bitmapscan"),
    "nested loops without memoize": (*SWITCHES, "indexscan", "indexonlyscan", "bitmapscan", "memoize"),
}


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """A ledger with a few pending rows, of which the planner believes that there is one: it then sees no harm in
    looking for the due ones again for each."""
    ledger = Ledger(database_url)
    for table in ("pending", "deliveries", "payloads_default"):
        ledger.execute(f"ALTER TABLE hookledger.{table} SET (autovacuum_enabled = false)")
    ledger.record(document("e0"))
    ledger.execute("ANALYZE hookledger.pending")
    ledger.record(*[document(f"e{number}") for number in range(1, ROWS)])
    yield ledger
    ledger.engine.dispose()


def switch_off(connection: Connection, planner: str) -> None:
    # What is switched off counts as so expensive that each plan would be compiled, which takes half a second.
    connection.exec_driver_sql("SET LOCAL jit = off")
    for name in PLANNERS[planner]:
        connection.exec_driver_sql(f"SET LOCAL enable_{name} = off")


def unclaimed(ledger: Ledger) -> int:
    return sum(row.attempts == 0 for row in ledger.pending().values())


@pytest.mark.parametrize("number", [1, 7])
@pytest.mark.parametrize("planner", PLANNERS)
def test_b037_a_claim_takes_exactly_what_it_was_asked_for(planner: str, number: int, ledger: Ledger) -> None:
    first = 1
    for left in range(ROWS - number, -1, -number):
        with ledger.engine.begin() as connection:
            switch_off(connection, planner)
            claimed = REPOSITORY.claim(connection, number, POLICY)
        assert sorted(row.id for row in claimed) == list(range(first, first + number)), "the oldest, none twice"
        assert unclaimed(ledger) == left
        first += number


@pytest.mark.parametrize("planner", PLANNERS)
def test_b037_a_claim_passes_over_what_others_hold(planner: str, ledger: Ledger) -> None:
    """It waits for nobody: the locks of the others are kept until it has its rows."""
    with ledger.transaction() as one, ledger.transaction() as another:
        for connection, ids in ((one, "1, 2, 3, 9, 20"), (another, "4, 10, 11")):
            connection.exec_driver_sql(f"SELECT FROM hookledger.pending WHERE delivery_id IN ({ids}) FOR UPDATE")
        with ledger.engine.begin() as connection:
            connection.exec_driver_sql("SET LOCAL lock_timeout = '10s'")
            switch_off(connection, planner)
            first = REPOSITORY.claim(connection, 7, POLICY)
            with ledger.engine.begin() as beside:
                switch_off(beside, planner)
                rest = REPOSITORY.claim(beside, 7, POLICY)
    assert sorted(row.id for row in first) == [5, 6, 7, 8, 12, 13, 14]
    assert sorted(row.id for row in rest) == [15, 16, 17, 18, 19]


def fill(connection: Connection, first: int, last: int) -> None:
    """Make deliveries of these ids pending, each with a payload of its own."""
    moment = "timestamptz '2026-01-01' + n * interval '1 millisecond'"
    for statement in (
        "INSERT INTO hookledger.payloads (id, received_at, headers, body)"
        f" SELECT n, {moment}, '[]', '{{}}' FROM generate_series({first}, {last}) n",
        "INSERT INTO hookledger.deliveries (id, source, event_id, event_type, payload_id, received_at, body_digest)"
        f" SELECT n, 'shop', 'e' || n, 'add', n, {moment}, '' FROM generate_series({first}, {last}) n",
        "INSERT INTO hookledger.pending (delivery_id, due_at)"
        f" SELECT n, {moment} FROM generate_series({first}, {last}) n",
    ):
        connection.exec_driver_sql(statement)


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A node of a plan and those below it."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def expect_index(case: tuple[object, ...], explained: Any) -> None:
    """Every table of the ledger is read by an index, and the due rows by that of their time."""
    (top,) = explained if isinstance(explained, list) else json.loads(explained)
    found = list(nodes(top["Plan"]))
    scans = [node for node in found if node.get("Relation Name", "").startswith(TABLES) and "Scan" in node["Node Type"]]
    assert {node["Node Type"] for node in scans} <= {"Index Scan", "Index Only Scan"}, (case, top)
    assert DUE_INDEX in {node.get("Index Name") for node in scans}, (case, top)
    # The index gives the order already: nothing is sorted, so no more is read than is claimed.
    assert not any("Sort" in node["Node Type"] for node in found), (case, top)


def with_numbers(statement: str) -> tuple[str, list[str]]:
    """A statement with numbered parameters, as PREPARE takes it, and the names of those."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
    for number, name in enumerate(names, 1):
        statement = statement.replace(f"%({name})s", f"${number}")
    return statement, names


def expect_index_for_all_claims(connection: Connection, statistics: str) -> None:
    """The same for batches and beginnings of any kind, with and without parameters in the plan."""
    for batch, since in itertools.product((1, 100, 1000), ("-infinity", "2026-01-01 00:10")):
        case = (statistics, batch, since)
        given = {"since": since, "since_id": 7}
        claim = claim_statement("hookledger", batch)
        statement, names = with_numbers(claim)
        types = ", ".join({"since": "timestamptz", "since_id": "bigint"}[name] for name in names)
        execute = f"EXPLAIN (FORMAT JSON) EXECUTE claim ({', '.join(repr(str(given[name])) for name in names)})"
        expect_index(case, connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {claim}", given).scalar_one())
        connection.exec_driver_sql(f"PREPARE claim ({types}) AS {statement}")
        for mode in ("force_generic_plan", "force_custom_plan"):
            connection.exec_driver_sql(f"SET plan_cache_mode = {mode}")
            expect_index((*case, mode), connection.exec_driver_sql(execute).scalar_one())
        connection.exec_driver_sql("DEALLOCATE claim")


def test_a_claim_among_a_million_uses_the_index(database_url: str) -> None:
    """Even while the planner knows of twenty."""
    analyze = "ANALYZE hookledger.pending, hookledger.deliveries, hookledger.payloads"
    engine = create_engine(database_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for table in ("pending", "deliveries", "payloads_default"):
            connection.exec_driver_sql(f"ALTER TABLE hookledger.{table} SET (autovacuum_enabled = false)")
        fill(connection, 1, ROWS)
        connection.exec_driver_sql(analyze)
        fill(connection, ROWS + 1, MANY)
        expect_index_for_all_claims(connection, "stale")
        connection.exec_driver_sql(analyze)
        expect_index_for_all_claims(connection, "fresh")


def pages_of_a_claim(ledger: Ledger, since: Position | None) -> int:
    """How many pages a claim looks at to find what is due; it is taken back."""
    due_at, id = since or ("-infinity", 0)
    given = {"since": due_at, "since_id": id}
    with ledger.transaction() as connection:
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {claim_statement('hookledger', BATCH)}"
        (top,) = connection.exec_driver_sql(explain, given).scalar_one()
        (scan,) = [node for node in nodes(top["Plan"]) if node.get("Index Name") == DUE_INDEX]
        return int(scan["Shared Hit Blocks"]) + int(scan["Shared Read Blocks"])


@pytest.mark.parametrize(
    "due_at", ["timestamptz '2026-01-01'", "timestamptz '2026-01-01' + delivery_id * interval '50 ms'"]
)
def test_b043_an_old_transaction_makes_claims_read_no_more(due_at: str, ledger: Ledger) -> None:
    """20,000 go through while it keeps vacuum away: what was settled stays in the index, at its beginning. A claim
    begins where the one before it found something, also among those that came at the same moment."""
    look = Look(FullLooks())
    read: list[int] = []
    with ledger.engine.begin() as connection:
        fill(connection, ROWS + 1, PASSING)
        connection.exec_driver_sql(f"UPDATE hookledger.pending SET due_at = {due_at}")
    ledger.engine.execution_options(isolation_level="AUTOCOMMIT").connect().exec_driver_sql(
        "VACUUM ANALYZE hookledger.pending"
    )
    with ledger.engine.connect().execution_options(isolation_level="REPEATABLE READ") as old:
        old.exec_driver_sql("SELECT FROM hookledger.pending")
        for _ in range(PASSING // BATCH - 1):
            with ledger.engine.begin() as connection:
                rows = REPOSITORY.claim(connection, BATCH, POLICY, since=look.since(0))
            assert len(rows) == BATCH
            look.found(rows, 0, all_taken=False)
            ledger.execute("DELETE FROM hookledger.pending WHERE attempts > 0")
            read.append(pages_of_a_claim(ledger, look.since(0)))
        from_the_beginning = pages_of_a_claim(ledger, None)
    assert max(read) <= 2 * read[0]
    assert from_the_beginning > 5 * max(read), "vacuum was kept away, so this test can fail"


IDS = "{" + ",".join(map(str, range(PASSING + 1, PASSING + BATCH + 1))) + "}"
BY_IDS = {
    "take": {"ids": IDS, "first_delay": 5.0, "factor": 2.0, "longest_delay": 3600.0, "jitter": 0.25},
    "hold": bound("ours", ("delivery_id", "attempts"), [(id, 0) for id in range(PASSING + 1, PASSING + BATCH + 1)]),
    "hold_waiting": bound("ours", ("delivery_id", "attempts"), [(PASSING + id, 0) for id in range(1, BATCH + 1)]),
    "hold_alike": {"ids": IDS, "attempts": 0},
    "give_back": bound("back", GivenBack._fields, [(PASSING + id, 0, 0, None) for id in range(1, BATCH + 1)]),
    "park": bound("parked", Parked._fields, [(PASSING + id, 0, 0, None, 1.0) for id in range(1, BATCH + 1)]),
    "postpone": bound("late", Postponed._fields, [(PASSING + id, 0, 1.0, "no") for id in range(1, BATCH + 1)]),
    "bury": bound("dead", Buried._fields, [(PASSING + id, 0, "failed", "no", "f") for id in range(1, BATCH + 1)]),
    "settle": {**bound("effect", NewEffect._fields, []), "settled": IDS},
}


def test_b043_a_burst_into_a_queue_that_was_known_to_be_empty(ledger: Ledger) -> None:
    """Vacuum has seen it empty, as most queues are, while an old transaction kept what had gone through. Nothing reads
    the whole table for what it wants, much less once for each row."""
    with ledger.engine.begin() as connection:
        fill(connection, ROWS + 1, PASSING)
    admin = ledger.engine.execution_options(isolation_level="AUTOCOMMIT").connect()
    with ledger.engine.connect().execution_options(isolation_level="REPEATABLE READ") as old:
        old.exec_driver_sql("SELECT FROM hookledger.pending")
        ledger.execute("DELETE FROM hookledger.pending")
        admin.exec_driver_sql("VACUUM ANALYZE hookledger.pending")
        known = "SELECT reltuples, relpages > 50 FROM pg_class WHERE oid = 'hookledger.pending'::regclass"
        assert ledger.execute(known) == [(0, True)]
        with ledger.engine.begin() as connection:
            fill(connection, PASSING + 1, PASSING + 5_000)
        most = {}
        for name, given in [("claim", {"since": "2026-01-01 00:00:20", "since_id": PASSING}), *BY_IDS.items()]:
            statement = claim_statement("hookledger", BATCH) if name == "claim" else getattr(REPOSITORY.sql, name)
            numbered, names = with_numbers(statement)
            values = ", ".join("NULL" if given[each] is None else f"'{given[each]}'" for each in names)
            for mode in ("force_custom_plan", "force_generic_plan"):
                with ledger.transaction() as connection:
                    connection.exec_driver_sql(f"SET LOCAL plan_cache_mode = {mode}")
                    connection.exec_driver_sql(f"PREPARE tried AS {numbered}")
                    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE tried ({values})"
                    (top,) = connection.exec_driver_sql(explain.replace("%", "%%")).scalar_one()
                    most[name, mode] = max(
                        int(node["Actual Rows"] * node["Actual Loops"]) for node in nodes(top["Plan"])
                    )
                    connection.exec_driver_sql("DEALLOCATE tried")
                    connection.rollback()
    admin.close()
    # Joined with the same ids, at the worst each row once for each of them.
    assert {case: rows for case, rows in most.items() if rows > BATCH * BATCH} == {}
    assert {most[case] for case in most if case[0] in ("claim", "take", "hold_alike", "settle")} == {BATCH}
