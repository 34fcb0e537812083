"""The result of the demo, and what each number counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """What a run of the demo has shown.

    When nothing went wrong, `sent == accepted`, `unique == deliveries asked for`, `accepted == unique + copies`,
    and `applied + stale + superseded == unique`.

    Args:
        sent: requests that the senders had to deliver: each event once, and the copies. A request that had to be
            tried again is one.
        accepted: those that were answered 2xx in the end.
        unique: different events in the ledger, that is, deliveries.
        applied, stale, superseded: effects in the ledger by outcome; each event of the demo has one handler, so
            they are events. Stale was refused by the watermark; superseded lost to a newer one of its batch.
        resent: what was sent again: the copies, on purpose, and every further try of a request that had no 2xx.
        lost, doubled, misordered: see `hookledger.demo.check`.
        workers_killed: with SIGKILL, while they worked.
        seconds: from the first request until nothing was pending.
        p50, p99: seconds from receipt (when the transaction of the receiver began) to applied (when that of the
            worker was committed): half, and 99 of 100, took no longer. None if nothing was applied.
    """

    sent: int
    accepted: int
    unique: int
    applied: int
    stale: int
    superseded: int
    resent: int
    lost: int
    doubled: int
    misordered: int
    workers_killed: int
    seconds: float
    p50: float | None = None
    p99: float | None = None

    @property
    def right(self) -> bool:
        """Whether nothing was lost, doubled or misordered."""
        return self.lost == self.doubled == self.misordered == 0

    @property
    def rate(self) -> float:
        """Different events a second, from the first request until nothing was pending."""
        return self.unique / self.seconds if self.seconds > 0 else 0.0


KEYS = (
    "sent",
    "accepted",
    "unique",
    "applied",
    "stale",
    "superseded",
    "resent",
    "lost",
    "doubled",
    "misordered",
    "workers_killed",
    "seconds",
)


def as_document(result: Result) -> dict[str, Any]:
    """The result as `--json` prints it."""
    return {key: getattr(result, key) for key in KEYS}


def as_table(result: Result) -> str:
    """The result for a person, in lines of a name, a number and what it counts."""
    rows = [
        ("sent", f"{result.sent:,}", "requests, signed by the senders"),
        ("accepted", f"{result.accepted:,}", "answered 2xx"),
        ("unique", f"{result.unique:,}", "different events in the ledger"),
        ("applied", f"{result.applied:,}", "events whose handler ran"),
        ("stale", f"{result.stale:,}", "came after a newer one was applied"),
        ("superseded", f"{result.superseded:,}", "came together with a newer one"),
        ("resent", f"{result.resent:,}", "copies, and tries of what had no answer"),
        ("lost", f"{result.lost:,}", "acknowledged, and without effect"),
        ("doubled", f"{result.doubled:,}", "effects that are there twice"),
        ("misordered", f"{result.misordered:,}", "resources in another state than their newest"),
        ("rate", f"{result.rate:,.0f}", f"events a second, for {result.seconds:.1f} s"),
        ("receipt to applied", _seconds(result.p50), "half of them within"),
        ("", _seconds(result.p99), "99 of 100 within"),
        ("workers killed", f"{result.workers_killed:,}", "with SIGKILL"),
    ]
    return "\n".join(f"{name:<18}  {number:>8}  {meaning}" for name, number, meaning in rows)


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
