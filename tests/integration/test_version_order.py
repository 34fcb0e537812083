"""PostgreSQL orders versions as Python does, so both agree on which is the newest (D7)."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from hookledger.ledger.arrays import version_text
from hookledger.version import read_version

numbers = st.one_of(
    st.integers(-(10**119), 10**119),
    st.integers(-3, 3),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=8),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100).filter(
        lambda value: value == 0 or abs(value) > 1e-100
    ),
    st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC)),
    st.sampled_from(["9", "10", "1000", "999", "-0.0", "+1.50", "2025-04-30T10:00:00Z"]),
)
versions = st.lists(numbers, min_size=1, max_size=3).map(tuple).map(read_version)


def test_b033_numeric_arrays_are_ordered_as_python_orders_versions(engine: Engine) -> None:
    compare = text("SELECT CAST(:one AS numeric[]) < CAST(:two AS numeric[]), CAST(:one AS numeric[])")
    with engine.connect() as connection:

        @settings(max_examples=300, deadline=None)
        @given(versions, versions)
        def agree(one: Any, two: Any) -> None:
            row = connection.execute(compare, {"one": version_text(one), "two": version_text(two)}).one()
            assert row[0] == (one < two)
            assert tuple(row[1]) == one, "and it comes back as it was"

        agree()


def test_a_time_comes_back_as_a_time(engine: Engine) -> None:
    """Its six decimals are what tells it from a counter."""
    (version,) = read_version("2025-04-30T10:00:00Z") or ()
    with engine.connect() as connection:
        (stored,) = connection.execute(
            text("SELECT CAST(:version AS numeric[])"), {"version": version_text((version,))}
        ).scalar_one()
    assert isinstance(stored, Decimal)
    assert stored.as_tuple() == Decimal(version).as_tuple()
