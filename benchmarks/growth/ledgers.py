"""How the rate of draining depends on what is in the ledger already, and on a transaction that is held open."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psycopg

from benchmarks.database import dsn, settle_down
from benchmarks.growth.rates import AtWork, Crew, drain_rate, row
from benchmarks.ledger import add_pending, add_settled
from benchmarks.report import median, tell
from benchmarks.server import Server

RESOURCES = 1000
BODY = 800
MIB = 1024 * 1024
WATCHED = ("pending", "resource_state", "deliveries", "effects")
SIZES = "SELECT pg_table_size(%(table)s::regclass), pg_indexes_size(%(table)s::regclass)"


def with_settled(
    server: Server, crew: Crew, settled: Sequence[int], deliveries: int, runs: int
) -> list[dict[str, Any]]:
    """The rate beside so many settled deliveries.

    Args:
        server: to measure on.
        crew: the workers.
        settled: the numbers of settled deliveries at the start.
        deliveries: that are drained in each run.
        runs: of each.
    """
    found = []
    for number in settled:
        with server.database(ledger=True) as url:
            tell(f"writing {number:,} settled deliveries")
            add_settled(url, number, resources=RESOURCES, body=BODY)
            rates = []
            for _ in range(runs):
                add_pending(url, deliveries, resources=RESOURCES, body=BODY)
                settle_down(url)
                # Counted on the way, as where more are pending than are drained: that takes some time as well.
                rates.append(drain_rate(url, crew, at_most=deliveries))
            found.append(row(settled=number, pending=deliveries, per_second=median(rates)))
            tell(f"{number:,} settled: {median(rates):,.0f} a second")
    return found


def with_pending(server: Server, crew: Crew, pending: int, deliveries: int, runs: int) -> list[dict[str, Any]]:
    """The rate while so many are pending, measured on the first of them. Arguments are those of `with_settled`."""
    with server.database(ledger=True) as url:
        tell(f"writing {pending:,} pending deliveries")
        add_pending(url, pending, resources=RESOURCES, body=BODY)
        rates = []
        for _ in range(runs):
            settle_down(url)
            rates.append(drain_rate(url, crew, at_most=deliveries))
        tell(f"{pending:,} pending: {median(rates):,.0f} a second")
        return [row(settled=0, pending=pending, per_second=median(rates))]


def with_a_transaction_held(
    server: Server, crew: Crew, seconds: float, deliveries: int, rounds: int, resources: int
) -> list[dict[str, Any]]:
    """The rate of workers that go on working, in rounds: one before another transaction holds xmin back, those while it
    does, and one more after it has ended.

    Args:
        server: to measure on.
        crew: the workers.
        seconds: that the transaction is open; the last round within it begins at their end.
        deliveries: that pass while it is open.
        rounds: that they come in, evenly spaced.
        resources: that they are about. Each move of a watermark leaves a row behind: the fewer, the more of each.
    """
    share = deliveries // rounds
    found = []
    with server.database(ledger=True) as url, AtWork(url, crew) as workers, psycopg.connect(dsn(url)) as holder:

        def measured(state: str, begun: float) -> None:
            before = workers.settled
            add_pending(url, share, resources=resources, body=BODY)
            rate = workers.rate(before, share)
            found.append(row(transaction=state, at_seconds=round(begun, 1), per_second=rate, **_sizes(url)))
            tell(f"transaction {state} at {begun:.0f} s: {rate:,.0f} a second")

        measured("to come", 0.0)
        settle_down(url)
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT count(*) FROM hookledger.pending")
        start = time.monotonic()
        for number in range(rounds):
            due = start + number * seconds / max(1, rounds - 1)
            time.sleep(max(0.0, due - time.monotonic()))
            measured("open", time.monotonic() - start)
        holder.rollback()
        measured("ended", time.monotonic() - start)
    return found


def _sizes(url: str) -> dict[str, float]:
    found = {}
    with psycopg.connect(dsn(url)) as connection:
        for name in WATCHED:
            sizes = connection.execute(SIZES, {"table": f"hookledger.{name}"}).fetchone()
            assert sizes is not None
            found[f"{name}_mib"] = sizes[0] / MIB
            found[f"{name}_index_mib"] = sizes[1] / MIB
    return found
