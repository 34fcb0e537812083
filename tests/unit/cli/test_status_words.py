"""Numbers and spans of time as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hookledger.cli.status import duration, shown, verdict
from hookledger.ledger.status import Counts, Pending, Precision, SourceStatus, Status

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "precision", "text"),
    [
        (0, Precision.EXACT, "0"),
        (12345, Precision.EXACT, "12,345"),
        (10000, Precision.AT_LEAST, "10,000+"),
        (1234567, Precision.ABOUT, "~1,200,000"),
        (7, Precision.ABOUT, "~7"),
    ],
)
def test_counts(count: int, precision: Precision, text: str) -> None:
    assert shown(count, precision) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (90_061, "1 d 1 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def status(pending: Pending, dead: Counts | None = None) -> Status:
    return Status("hookledger", NOW, NOW, {"stripe": SourceStatus(pending, dead or Counts())})


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (Status("hookledger", NOW, None, {}), "No deliveries yet."),
        (status(Pending()), "Nothing is pending; no dead letters."),
        (
            status(Pending(3, 1, oldest_due_at=NOW - timedelta(seconds=14))),
            "3 pending, the oldest due for 14 s; no dead letters.",
        ),
        (
            status(Pending(1, 0, oldest_due_at=NOW + timedelta(minutes=2)), Counts({"failed": 2})),
            "1 pending, the next due in 2 min 0 s; 2 dead (2 failed).",
        ),
    ],
)
def test_the_verdict(found: Status, sentence: str) -> None:
    assert verdict(found) == sentence


def test_sources_add_up() -> None:
    least = Precision.AT_LEAST
    found = Status(
        "hookledger",
        NOW,
        NOW,
        {
            "a": SourceStatus(Pending(6000, 2, 1, 1, NOW, least), Counts({"failed": 1}), Counts({"applied": 5})),
            "b": SourceStatus(
                Pending(4001, 1, 0, 0, NOW - timedelta(1), least), Counts({"failed": 2, "crashed": 1}), Counts()
            ),
        },
    )
    assert found.total.pending == Pending(10_000, 3, 1, 1, NOW - timedelta(1), least)
    assert found.total.dead.by_kind == {"crashed": 1, "failed": 3}
    assert found.total.settled.count == 5
    assert found.seconds_overdue == 86_400
