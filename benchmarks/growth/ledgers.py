"""How the rate of draining depends on what is in the ledger already, and on a transaction that is held open."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psycopg

from benchmarks.database import dsn, settle_down
from benchmarks.growth.rates import Crew, drain_rate, row
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
                rates.append(drain_rate(url, crew))
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
    server: Server, crew: Crew, seconds: float, deliveries: int, rounds: int
) -> list[dict[str, Any]]:
    """The rate in rounds while another transaction holds xmin back, and in one more after it has ended.

    Args:
        server: to measure on.
        crew: the workers.
        seconds: that the transaction is open; the last round within it begins at their end.
        deliveries: that pass while it is open.
        rounds: that they come in, evenly spaced.
    """
    share = deliveries // rounds
    found = []
    with server.database(ledger=True) as url, psycopg.connect(dsn(url)) as holder:
        settle_down(url)
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT count(*) FROM hookledger.pending")
        start = time.monotonic()
        for number in range(rounds + 1):
            if number < rounds:
                due = start + number * seconds / max(1, rounds - 1)
                time.sleep(max(0.0, due - time.monotonic()))
            else:
                holder.rollback()
            begun = round(time.monotonic() - start, 1)
            add_pending(url, share, resources=RESOURCES, body=BODY)
            rate = drain_rate(url, crew)
            state = "open" if number < rounds else "ended"
            found.append(row(transaction=state, at_seconds=begun, per_second=rate, **_sizes(url)))
            tell(f"transaction {state} at {begun:.0f} s: {rate:,.0f} a second")
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
