"""`python -m benchmarks drain`: all contenders in turn, run after run, each in a database of its own."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.database import settle_down
from benchmarks.drain.contender import Job, as_json
from benchmarks.processes import run_program
from benchmarks.python312 import python_with_oban
from benchmarks.report import Failed, machine, median, ratio, tell, versions
from benchmarks.server import Server, running_server

OURS, OURS_INSERT = "ours", "ours_insert"
MEASURED_AGAINST = {
    "plain": OURS,
    "plain_insert": OURS_INSERT,
    "pgqueuer": OURS,
    "oban": OURS,
    "procrastinate": OURS,
}
"""The rivals, in the order in which they run, and which of ours each is compared with."""
CALIBRATED = ("pgqueuer", "oban", "procrastinate")
TRIES = 2
"""Of each of a rival's settings; the better one counts."""
NEEDS = {"pgqueuer": ("pgqueuer", "asyncpg", "uvloop"), "procrastinate": ("procrastinate", "uvloop")}


@dataclass(frozen=True)
class Contender:
    """One that takes part.

    Args:
        name: its key in the result.
        module: its name in `contender.MODULES`.
        job: what it drains, but for the database.
        python: its interpreter.
    """

    name: str
    module: str
    job: Job
    python: str = sys.executable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    rivals = parser.add_argument_group("rivals")
    parser.add_argument("--deliveries", type=int, default=200_000, help="of ours, plain psycopg and pgqueuer")
    rivals.add_argument("--oban-jobs", type=int, default=40_000, help="jobs of oban, which is slower")
    rivals.add_argument("--procrastinate-jobs", type=int, default=5_000, help="jobs of procrastinate, slower still")
    rivals.add_argument("--only", metavar="NAMES", help=f"rivals to run, with commas: {','.join(MEASURED_AGAINST)}")
    rivals.add_argument(
        "--no-calibration",
        action="store_true",
        help="take the rivals' default settings; without it, each runs with those found to be its fastest",
    )
    parser.add_argument("--workers", type=int, default=2, help="worker processes of each")
    parser.add_argument("--batch", type=int, default=100, help="of plain psycopg and pgqueuer; ours has its default")
    parser.add_argument("--resources", type=int, default=1000, help="that the deliveries are about")
    parser.add_argument("--body", type=int, default=800, help="bytes of a payload")
    parser.add_argument("--engine", choices=("sync", "async"), default="sync", help="of ours, and of its handler")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, and return the result."""
    rivals = _chosen(options.only)
    with running_server() as server:
        contenders, calibration, not_measured = _contenders(rivals, options, server)
        rates: dict[str, list[float]] = defaultdict(list)
        outcomes: dict[str, dict[str, int]] = {}
        for number in range(options.runs):
            for contender in list(contenders):
                try:
                    result = measure(contender, server)
                except Failed as error:
                    if contender.module == OURS:
                        raise
                    contenders.remove(contender)
                    rates.pop(contender.name, None)
                    _leave_out(contender.name, error, not_measured)
                    continue
                rate = contender.job.deliveries / result["seconds"]
                rates[contender.name].append(round(rate, 1))
                outcomes.update({contender.name: result["outcomes"]} if "outcomes" in result else {})
                tell(f"run {number + 1} of {options.runs}: {contender.name} {rate:,.0f} a second")
        medians = {name: median(found) for name, found in rates.items()}
        return {
            "benchmark": "drain",
            "ratios": {
                name: ratio(medians[ours], medians[name]) for name, ours in MEASURED_AGAINST.items() if name in medians
            },
            "medians_per_second": medians,
            "rates_per_second": dict(rates),
            "not_measured": not_measured,
            "outcomes_of_last_run": outcomes,
            "settings": {contender.name: _settings(contender.job) for contender in contenders},
            "calibration": calibration,
            "options": _told(options),
            "machine": machine(),
            "server": server.settings,
            "versions": {**versions(server.version), **_version_of_oban(contenders)},
        }


def measure(contender: Contender, server: Server) -> dict[str, Any]:
    """Fill a database of its own, let the server come to rest, and let the contender drain it."""
    with server.database(ledger=contender.module == OURS) as url:
        job = as_json(replace(contender.job, url=url))
        _step(contender, "prepare", job)
        settle_down(url)
        result: dict[str, Any] = _step(contender, "work", job)
        return result


def _step(contender: Contender, step: str, job: str) -> Any:
    return run_program("benchmarks.drain.contender", [contender.module, step], given=job, python=contender.python)


def _chosen(only: str | None) -> list[str]:
    if only is None:
        return list(MEASURED_AGAINST)
    names = [name.strip() for name in only.split(",")]
    unknown = [name for name in names if name not in MEASURED_AGAINST]
    if unknown:
        raise Failed(f"there is no rival {unknown[0]!r}: choose of {', '.join(MEASURED_AGAINST)}")
    return [name for name in MEASURED_AGAINST if name in names]


def _with_ours(rivals: Sequence[str]) -> list[str]:
    # Ours runs beside those it is compared with.
    wanted = {MEASURED_AGAINST[name] for name in rivals}
    order = [OURS, "plain", OURS_INSERT, "plain_insert", "pgqueuer", "oban", "procrastinate"]
    return [name for name in order if name in wanted or name in rivals]


def _contenders(
    rivals: Sequence[str], options: argparse.Namespace, server: Server
) -> tuple[list[Contender], dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Those that can be measured, what their settings gave, and why others cannot."""
    contenders = []
    calibration: dict[str, list[dict[str, Any]]] = {}
    not_measured: dict[str, str] = {}
    for name in _with_ours(rivals):
        try:
            contender = _contender(name, options)
            if contender.module in CALIBRATED:
                contender, calibration[name] = _calibrated(contender, server, try_all=not options.no_calibration)
        except Failed as error:
            _leave_out(name, error, not_measured)
        else:
            contenders.append(contender)
    return contenders, calibration, not_measured


def _leave_out(name: str, error: Failed, not_measured: dict[str, str]) -> None:
    not_measured[name] = str(error)
    tell(f"{name} is not measured: {error}")


def _contender(name: str, options: argparse.Namespace) -> Contender:
    insert = name in (OURS_INSERT, "plain_insert")
    job = Job(
        url="",
        deliveries={"oban": options.oban_jobs, "procrastinate": options.procrastinate_jobs}.get(
            name, options.deliveries
        ),
        workers=options.workers,
        resources=options.resources,
        body=options.body,
        batch=options.batch,
        insert=insert,
        engine=options.engine,
    )
    missing = [package for package in NEEDS.get(name, ()) if importlib.util.find_spec(package) is None]
    if missing:
        raise Failed(f"{' and '.join(missing)} missing: pip install '.[benchmarks]'")
    python = python_with_oban() if name == "oban" else sys.executable
    return Contender(name, name.removesuffix("_insert"), job, python)


def _calibrated(contender: Contender, server: Server, *, try_all: bool) -> tuple[Contender, list[dict[str, Any]]]:
    """The contender with its fastest settings, for a rival must not lose by how we set it up; and what each gave."""
    found = run_program("benchmarks.drain.variants", [contender.module], python=contender.python)
    variants: list[dict[str, Any]] = found["variants"]
    best, fastest, tried = variants[0], 0.0, []
    for variant in variants if try_all else []:
        deliveries = min(found["calibration"], contender.job.deliveries)
        job = replace(contender.job, deliveries=deliveries, variant=variant)
        seconds = [measure(replace(contender, job=job), server)["seconds"] for _ in range(TRIES)]
        rate = deliveries / min(seconds)
        tried.append({**variant, "per_second": round(rate, 1)})
        tell(f"{contender.name} with {variant}: {rate:,.0f} a second")
        if rate > fastest:
            best, fastest = variant, rate
    return replace(contender, job=replace(contender.job, variant=best)), tried


def _settings(job: Job) -> dict[str, Any]:
    return {"deliveries": job.deliveries, "workers": job.workers, **job.variant}


def _told(options: argparse.Namespace) -> dict[str, Any]:
    names = ("runs", "deliveries", "workers", "batch", "resources", "body", "engine")
    return {name: getattr(options, name) for name in names}


def _version_of_oban(contenders: Sequence[Contender]) -> dict[str, str]:
    for contender in contenders:
        if contender.name == "oban":
            found: dict[str, str] = run_program("benchmarks.drain.variants", ["oban"], python=contender.python)
            return {"oban": found["version"], "oban_python": found["python"]}
    return {}
