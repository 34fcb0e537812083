"""`python -m benchmarks growth`: how the cost grows, as tables, and as a picture if wanted."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.growth import burst, curves, ledgers
from benchmarks.growth.picture import draw
from benchmarks.growth.rates import Crew
from benchmarks.processes import ROOT
from benchmarks.report import Failed, machine, tell, versions
from benchmarks.server import Server, running_server

PICTURE = ROOT / "docs" / "growth.svg"
SECTIONS = ("ledger", "held", "slots", "processes", "batch", "body", "burst", "resources")
FULL: dict[str, Any] = {
    "deliveries": 50_000,
    "settled": [10_000, 1_000_000, 5_000_000],
    "pending": 1_000_000,
    "held_seconds": 600.0,
    "held_deliveries": 500_000,
    "held_rounds": 11,
    "held_resources": 50_000,
    "slots": [1, 2, 4, 8, 16],
    "processes": [1, 2, 4],
    "batches": [1, 10, 100, 500],
    "bodies": [1_000, 10_000, 100_000, 1_000_000],
    "bursts": [5_000, 10_000, 20_000, 50_000],
    "burst_held": 1.0,
}
QUICK: dict[str, Any] = {
    **FULL,
    "deliveries": 2_000,
    "settled": [1_000, 20_000],
    "pending": 10_000,
    "held_seconds": 5.0,
    "held_deliveries": 6_000,
    "held_rounds": 3,
    "bursts": [500, 2_000],
}
WHAT = {
    "deliveries": "drained in each measurement",
    "settled": "numbers of settled deliveries in the ledger",
    "pending": "deliveries pending while the first of them are drained",
    "held_seconds": "for which a transaction is held open",
    "held_deliveries": "that pass meanwhile",
    "held_rounds": "in which they come",
    "held_resources": "that they are about",
    "slots": "of each worker",
    "processes": "numbers of worker processes",
    "batches": "sizes of a batch",
    "bodies": "bytes of a body",
    "bursts": "deliveries in flight at once",
    "burst_held": "seconds for which the database stands still under a burst",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.set_defaults(runs=3)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--only", metavar="NAMES", help=f"sections, with commas: {','.join(SECTIONS)}")
    parser.add_argument("--engine", choices=("sync", "async"), default="sync", help="of the workers")
    parser.add_argument("--receiver-engine", choices=("sync", "async"), default="async", help="of the receiver")
    parser.add_argument("--picture", action="store_true", help=f"draw {PICTURE.relative_to(ROOT)} as well")
    for name, full in FULL.items():
        several = isinstance(full, list)
        kind = type(full[0] if several else full)
        shown = " ".join(map(str, full)) if several else full
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=kind,
            nargs="+" if several else None,
            default=argparse.SUPPRESS,
            help=f"{WHAT[name]} (default: {shown})",
        )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, and return the result."""
    chosen = _chosen(options.only)
    sizes = {name: getattr(options, name, value) for name, value in (QUICK if options.quick else FULL).items()}
    crew = Crew(engine=options.engine)
    tables: dict[str, list[dict[str, Any]]] = {}
    with running_server() as server:
        for name, measure in _sections(server, crew, sizes, options).items():
            if name in chosen:
                tell(f"section {name}")
                tables[name] = measure()
        result: dict[str, Any] = {
            "benchmark": "growth",
            "ratios": _ratios(tables),
            **tables,
            "options": {"runs": options.runs, **sizes},
            "machine": machine(),
            "server": server.settings,
            "versions": versions(server.version),
        }
    if options.picture:
        _write(PICTURE, draw(tables))
    return result


def _sections(
    server: Server, crew: Crew, sizes: dict[str, Any], options: argparse.Namespace
) -> dict[str, Callable[[], list[dict[str, Any]]]]:
    deliveries, runs = sizes["deliveries"], options.runs
    return {
        "ledger": lambda: [
            *ledgers.with_settled(server, crew, sizes["settled"], deliveries, runs),
            *ledgers.with_pending(server, crew, sizes["pending"], deliveries, runs),
        ],
        "held": lambda: ledgers.with_a_transaction_held(
            server, crew, sizes["held_seconds"], sizes["held_deliveries"], sizes["held_rounds"], sizes["held_resources"]
        ),
        "slots": lambda: curves.by_slots(server, crew, sizes["slots"], deliveries, runs),
        "processes": lambda: curves.by_processes(server, crew, sizes["processes"], deliveries, runs),
        "batch": lambda: curves.by_batch(server, crew, sizes["batches"], deliveries, runs),
        "body": lambda: curves.by_body(server, crew, sizes["bodies"], deliveries, runs),
        "burst": lambda: burst.of_bursts(server, options.receiver_engine, sizes["bursts"], sizes["burst_held"]),
        "resources": lambda: curves.by_resources(server, crew, deliveries, runs),
    }


def _ratios(tables: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """What the tables come down to."""
    found: dict[str, float] = {}
    if "ledger" in tables:
        rates = [row["per_second"] for row in tables["ledger"]]
        found["ledger_slowest_to_fastest"] = round(min(rates) / max(rates), 3)
    if "held" in tables:
        rates = [row["per_second"] for row in tables["held"] if row["transaction"] == "open"]
        found["held_end_to_start"] = round(rates[-1] / rates[0], 3)
    if "resources" in tables:
        many, hot = [row["per_second"] for row in tables["resources"]]
        found["one_hot_resource_to_many"] = round(hot / many, 3)
    if "burst" in tables:
        largest = tables["burst"][-1]
        found["burst_memory_most_to_before"] = round(largest["memory_most_mib"] / largest["memory_before_mib"], 3)
        found["burst_acknowledged_but_lost"] = sum(row["acknowledged_but_lost"] for row in tables["burst"])
    return found


def _chosen(only: str | None) -> tuple[str, ...]:
    if only is None:
        return SECTIONS
    names = tuple(name.strip() for name in only.split(","))
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise Failed(f"there is no section {unknown[0]!r}: choose of {', '.join(SECTIONS)}")
    return names


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    tell(f"drew {path.relative_to(ROOT)}")
