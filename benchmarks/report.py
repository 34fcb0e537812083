"""What every benchmark says: its progress, its figures, and where they were taken."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PACKAGES = (
    "hookledger",
    "sqlalchemy",
    "psycopg",
    "psycopg-pool",
    "asyncpg",
    "uvloop",
    "httptools",
    "starlette",
    "uvicorn",
    "flask",
    "gunicorn",
    "pgqueuer",
    "procrastinate",
)


class Failed(Exception):
    """A benchmark cannot be run, or gave a wrong result; the message says what to do."""


def tell(line: str) -> None:
    """Say how far it is, on stderr: stdout is for the result."""
    print(line, file=sys.stderr, flush=True)


def median(values: Sequence[float]) -> float:
    """The median, to three significant digits more than are true."""
    return round(statistics.median(values), 4)


def ratio(ours: float, rival: float) -> float:
    """Ours divided by the rival's."""
    return round(ours / rival, 3)


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def versions(postgres: str) -> dict[str, str]:
    """The versions of everything that took part.

    Args:
        postgres: the server's.
    """
    found = {"postgresql": postgres, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def print_result(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the whole result as one JSON object, or what a person wants to see of it."""
    if as_json:
        print(json.dumps(result))
        return
    for key, value in result.items():
        if isinstance(value, Mapping):
            print(f"\n{key}")
            for name, one in value.items():
                print(f"  {name:<28} {_shown(one)}")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            print(f"\n{key}")
            print_table(value)
        else:
            print(f"{key:<30} {_shown(value)}")


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows with the same keys, in columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *[[_shown(row.get(name, "")) for name in names] for row in rows]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    for line in cells:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(_shown(one) for one in value)
    return str(value)


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
