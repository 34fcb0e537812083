"""What `hookledger doctor` says of the work that waits, and of where payloads go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hookledger.doctor import Severity
from tests.integration.doctor.conftest import Examine, Role


def test_a_delivery_that_nobody_works_on(found: Examine, role: Role) -> None:
    role.run("INSERT INTO hookledger.pending (delivery_id, due_at) VALUES (1, now() + interval '1 hour'), (2, now())")
    assert found("pending") == []
    role.run("UPDATE hookledger.pending SET due_at = now() - interval '3 hours' WHERE delivery_id = 2")
    (finding,) = found("pending")
    assert finding.severity is Severity.NOTE
    assert "due for 3 hours" in finding.what


def test_deliveries_that_were_given_up_lately(found: Examine, role: Role) -> None:
    values = "SELECT {}, now() - interval '{}', 3, '{}', 'x', 'f'"
    insert = "INSERT INTO hookledger.dead_letters "
    role.run(insert + values.format(1, "2 hours", "failed"))
    assert found("dead-letters") == []
    role.run(insert + values.format(2, "59 minutes", "failed"), insert + values.format(3, "1 second", "crashed"))
    (finding,) = found("dead-letters")
    assert finding.severity is Severity.NOTE
    assert "2 deliveries were given up in the last hour (1 crashed, 1 failed)" in finding.what


def test_partitions_ahead(found: Examine, role: Role) -> None:
    (finding,) = found("partitions")
    assert finding.severity is Severity.NOTE
    assert "no partition of payloads for tomorrow" in finding.what
    days = [_day(number) for number in (1, 2)]
    role.run(
        "SET TIME ZONE 'Asia/Tokyo'",
        f"CREATE TABLE hookledger.payloads_tomorrow PARTITION OF hookledger.payloads"
        f" FOR VALUES FROM ('{days[0]} 00:00:00+00') TO ('{days[1]} 00:00:00+00')",
    )
    assert found("partitions", {"TimeZone": "America/New_York", "DateStyle": "German"}) == []
    role.run("INSERT INTO hookledger.payloads (received_at, headers, body) VALUES (now(), '[]', '')")
    (finding,) = found("partitions")
    assert "payloads_default" in finding.what


def _day(number: int) -> str:
    return (datetime.now(UTC) + timedelta(days=number)).date().isoformat()
