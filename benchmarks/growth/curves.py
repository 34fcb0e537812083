"""How the rate of draining depends on slots, processes, batches, bodies, and on how many resources there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.database import settle_down
from benchmarks.growth.ledgers import BODY, RESOURCES
from benchmarks.growth.rates import Crew, drain_rate, row
from benchmarks.ledger import add_pending
from benchmarks.report import median, tell
from benchmarks.server import Server

MOST_BYTES = 512 * 1024 * 1024
"""Of the bodies of one measurement: of large ones there are fewer."""
LEAST_DELIVERIES = 200
HOT = 1


def by_slots(server: Server, crew: Crew, slots: Sequence[int], deliveries: int, runs: int) -> list[dict[str, Any]]:
    """The rate by the slots of each process."""
    crews = {number: replace(crew, settings=replace(crew.settings, slots=number)) for number in slots}
    return _each(server, "slots", crews, deliveries, runs)


def by_processes(
    server: Server, crew: Crew, numbers: Sequence[int], deliveries: int, runs: int
) -> list[dict[str, Any]]:
    """The rate by the number of worker processes."""
    return _each(server, "processes", {number: replace(crew, processes=number) for number in numbers}, deliveries, runs)


def by_batch(server: Server, crew: Crew, batches: Sequence[int], deliveries: int, runs: int) -> list[dict[str, Any]]:
    """The rate by the size of a batch; single deliveries are so slow that fewer are drained."""
    crews = {size: replace(crew, settings=replace(crew.settings, batch=size)) for size in batches}
    few = {size: min(deliveries, max(LEAST_DELIVERIES, size * 1000)) for size in batches}
    return [found for size in batches for found in _each(server, "batch", {size: crews[size]}, few[size], runs)]


def by_body(server: Server, crew: Crew, bodies: Sequence[int], deliveries: int, runs: int) -> list[dict[str, Any]]:
    """The rate by the size of a body, in bytes."""
    found = []
    for body in bodies:
        fitting = max(LEAST_DELIVERIES, min(deliveries, MOST_BYTES // body))
        rates = [_once(server, crew, fitting, body=body) for _ in range(runs)]
        found.append(row(body=body, deliveries=fitting, per_second=median(rates)))
        tell(f"body of {body:,} bytes: {median(rates):,.0f} a second")
    return found


def by_resources(server: Server, crew: Crew, deliveries: int, runs: int) -> list[dict[str, Any]]:
    """The rate if one resource gets every delivery, and if many do, in turn."""
    rates: dict[int, list[float]] = {RESOURCES: [], HOT: []}
    for _ in range(runs):
        for resources, found in rates.items():
            found.append(_once(server, crew, deliveries, resources=resources))
    for resources, found in rates.items():
        tell(f"{resources:,} resources: {median(found):,.0f} a second")
    return [
        row(resources=resources, deliveries=deliveries, per_second=median(found)) for resources, found in rates.items()
    ]


def _each(server: Server, what: str, crews: dict[int, Crew], deliveries: int, runs: int) -> list[dict[str, Any]]:
    rates: dict[int, list[float]] = {value: [] for value in crews}
    for _ in range(runs):
        for value, crew in crews.items():
            rates[value].append(_once(server, crew, deliveries))
    for value, found in rates.items():
        tell(f"{what} {value}: {median(found):,.0f} a second")
    return [row(**{what: value}, deliveries=deliveries, per_second=median(found)) for value, found in rates.items()]


def _once(server: Server, crew: Crew, deliveries: int, *, body: int = BODY, resources: int = RESOURCES) -> float:
    with server.database(ledger=True) as url:
        add_pending(url, deliveries, resources=resources, body=body)
        settle_down(url)
        return drain_rate(url, crew)
