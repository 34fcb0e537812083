"""The next attempt is so many seconds away, whatever the time zone and the night of the year (B047)."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from hookledger.ledger.arrays import bound
from hookledger.ledger.rows import Postponed
from hookledger.ledger.statements import statements

NIGHTS = ["2024-10-27 00:59:50+00", "2024-03-31 00:59:50+00", "2024-07-03 09:00+00", "2025-01-04 14:30+00"]


@pytest.mark.parametrize("zone", ["Australia/Sydney", "America/Santiago", "Europe/Berlin", "UTC"])
@pytest.mark.parametrize("now", NIGHTS)
def test_b047_the_due_time_is_the_delay_away(engine: Engine, zone: str, now: str) -> None:
    statement = statements("hookledger").postpone
    assert "clock_timestamp()" in statement
    at_that_time = statement.replace("clock_timestamp()", f"CAST('{now}' AS timestamptz)")
    with engine.begin() as connection:
        connection.execute(text(f"SET TIME ZONE '{zone}'"))
        connection.execute(text("INSERT INTO hookledger.pending (delivery_id, attempts) VALUES (1, 1)"))
        connection.exec_driver_sql(
            at_that_time, bound("late", Postponed._fields, [Postponed(1, 1, 300.0, "it failed")])
        )
        seconds = text(f"SELECT extract(epoch FROM due_at - CAST('{now}' AS timestamptz)) FROM hookledger.pending")
        assert connection.execute(seconds).scalar() == 300
