"""`python -m benchmarks receive`: all receivers in turn, run after run, each with a database of its own."""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.database import dsn, settle_down
from benchmarks.processes import run_program
from benchmarks.receive.serving import missing, serving
from benchmarks.receive.single import TABLES
from benchmarks.report import Failed, machine, median, ratio, tell, versions
from benchmarks.server import Server, running_server

ONE = "_1_connection"
PLAIN = "_plain_uvicorn"
"""Under uvicorn as `pip install uvicorn` gives it (h11, asyncio); others: uvicorn[standard] (httptools, uvloop)."""

MEASURED_AGAINST = {
    "bare": "ours",
    "starlette_bare": "ours",
    "shared": "ours",
    "single": "ours",
    "single_autocommit": "ours",
    "bare_plain_uvicorn": "ours_plain_uvicorn",
    "single_plain_uvicorn": "ours_plain_uvicorn",
    "single_1_connection": "ours_1_connection",
    "single_autocommit_1_connection": "ours_1_connection",
    "flask_bare": "flask_ours",
    "flask_single": "flask_ours",
    "flask_single_autocommit": "flask_ours",
}
"""The rivals, in the order in which they run, and which of ours each is compared with."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--seconds", type=float, default=5.0, help="that each measurement takes")
    parser.add_argument("--warm-up", type=float, default=1.0, help="seconds before it that do not count")
    parser.add_argument("--connections", type=int, default=64, help="of the load")
    parser.add_argument("--body", type=int, default=800, help="bytes of a request's body")
    parser.add_argument("--engine", choices=("sync", "async"), default="async", help="of ours under uvicorn")
    parser.add_argument("--only", metavar="NAMES", help=f"rivals to run, with commas: {','.join(MEASURED_AGAINST)}")
    parser.add_argument(
        "--most-per-second", type=int, default=40_000, help="requests that are made beforehand, for each second"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, and return the result."""
    names, not_measured = _chosen(options.only)
    rates: dict[str, list[float]] = defaultdict(list)
    shares: dict[str, list[float]] = defaultdict(list)
    with running_server() as server:
        for number in range(options.runs):
            for name in names:
                rate, share = measure(name, options, server)
                rates[name].append(round(rate, 1))
                shares[name].append(share)
                tell(f"run {number + 1} of {options.runs}: {name} {rate:,.0f} a second")
        medians = {name: median(found) for name, found in rates.items()}
        told = ("runs", "seconds", "warm_up", "connections", "body", "engine")
        return {
            "benchmark": "receive",
            "ratios": {
                name: ratio(medians[ours], medians[name]) for name, ours in MEASURED_AGAINST.items() if name in medians
            },
            "medians_per_second": medians,
            "rates_per_second": dict(rates),
            "core_share_of_load": {name: median(found) for name, found in shares.items()},
            "not_measured": not_measured,
            "options": {name: getattr(options, name) for name in told},
            "machine": machine(),
            "server": server.settings,
            "versions": versions(server.version),
        }


def measure(name: str, options: argparse.Namespace, server: Server) -> tuple[float, float]:
    """Serve one receiver, send to it, and see that everything it acknowledged is there.

    Returns:
        The 2xx a second, and the share of one core that the load itself took.

    Raises:
        Failed: it refused a request, or an acknowledged event is not in the database.
    """
    receiver = name.removesuffix(ONE).removesuffix(PLAIN)
    uvicorn = "plain" if name.endswith(PLAIN) else "standard"
    connections = 1 if name.endswith(ONE) else options.connections
    is_ours = receiver in ("ours", "flask_ours")
    with server.database(ledger=is_ours) as url, tempfile.TemporaryDirectory() as folder:
        if not is_ours:
            with psycopg.connect(dsn(url)) as connection:
                connection.execute(TABLES)
        settle_down(url)
        file = Path(folder) / "acknowledged"
        with serving(receiver, url, options.engine, uvicorn) as (port, _):
            most = int(options.most_per_second * (options.seconds + options.warm_up)) + connections
            arguments = [port, connections, options.warm_up, options.seconds, most, options.body, file]
            result = run_program("benchmarks.receive.generator", [str(argument) for argument in arguments])
        if result["ran_out"]:
            raise Failed(f"{name} answered all requests that were made beforehand: raise --most-per-second")
        if result["refused"] or result["broken"]:
            raise Failed(f"{name} refused requests with {result['refused']} and broke off {result['broken']}")
        if not receiver.endswith("bare"):
            lost = missing(url, file, "hookledger." if is_ours else "")
            if lost:
                raise Failed(f"{name} acknowledged {result['acknowledged']} events, {lost} of them are not stored")
        return float(result["per_second"]), float(result["core_share"])


def _chosen(only: str | None) -> tuple[list[str], dict[str, str]]:
    """What is run, and why the rest of what was asked for is not."""
    names = list(MEASURED_AGAINST) if only is None else [name.strip() for name in only.split(",")]
    unknown = [name for name in names if name not in MEASURED_AGAINST]
    if unknown:
        raise Failed(f"there is no rival {unknown[0]!r}: choose of {', '.join(MEASURED_AGAINST)}")
    not_measured: dict[str, str] = {}
    if importlib.util.find_spec("psycopg_pool") is None:
        reason = "psycopg_pool is missing: pip install '.[benchmarks]'"
        not_measured = dict.fromkeys([name for name in names if not name.endswith("bare")], reason)
    rivals = [name for name in MEASURED_AGAINST if name in names and name not in not_measured]
    order: dict[str, None] = {}
    for rival in rivals:
        order[MEASURED_AGAINST[rival]] = None
        order[rival] = None
    return list(order), not_measured
