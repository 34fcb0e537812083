"""The rate at which workers drain a ledger, whatever is in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.database import count
from benchmarks.drain.handlers import drain
from benchmarks.processes import timed
from benchmarks.report import Failed
from hookledger.worker import WorkerSettings

PENDING = "SELECT count(*) FROM hookledger.pending"
PROCESSES = 2


@dataclass(frozen=True)
class Crew:
    """The workers.

    Args:
        processes: how many there are.
        settings: of each.
        engine: "sync" or "async".
    """

    processes: int = PROCESSES
    settings: WorkerSettings = field(default_factory=WorkerSettings)
    engine: str = "sync"


def drain_rate(url: str, crew: Crew, *, at_most: int | None = None) -> float:
    """Let the workers work until nothing is due, or until about so many deliveries are settled.

    Returns:
        Deliveries settled a second, the start of the processes included.

    Raises:
        Failed: they left something that they should not have.
    """
    share = None if at_most is None else max(1, at_most // crew.processes)
    before = count(url, PENDING)
    seconds = timed(drain, crew.processes, url, crew.settings, False, crew.engine == "async", share)
    left = count(url, PENDING)
    if at_most is None and left:
        raise Failed(f"{left} of {before} deliveries are still pending")
    return (before - left) / seconds


def row(**values: Any) -> dict[str, Any]:
    """A row of a table of results; rates are rounded."""
    return {name: round(value, 1) if isinstance(value, float) else value for name, value in values.items()}
