"""The clock of this machine and that of the database."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, text

from hookledger.doctor.finding import Finding, Severity, Subject, in_words

LOOKS = 3


def clock(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """How far they are apart, by the look that took the least time."""
    looks: list[tuple[float, float]] = []
    for _ in range(LOOKS):
        before = subject.clock()
        there = float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
        after = subject.clock()
        looks.append((abs(after - before) / 2, there - (before + after) / 2))
    uncertain, ahead = min(looks, key=lambda look: look[0])
    if abs(ahead) - uncertain <= subject.limits.clock.total_seconds():
        return
    yield Finding(
        Severity.WARNING,
        "clock",
        f"the clock of this machine is {in_words(abs(ahead))} {'behind' if ahead > 0 else 'ahead of'} the database's: "
        "signatures with a time are judged by the one, due times and versions from the future by the other",
        "have both keep their time by NTP",
    )
