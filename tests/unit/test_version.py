"""Versions are compared as numbers, whatever they were written as (B032, B033)."""

from __future__ import annotations

import decimal
import enum
import itertools
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger.errors import UncomparableVersion
from hookledger.version import comparable, in_words, read_version, seconds_ahead, time_version

HOUR = timedelta(hours=1)

integers = st.integers(-(10**119), 10**119)
decimals = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30, places=9)
floats = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100).filter(
    lambda value: value == 0 or abs(value) > 1e-100
)
numbers = st.one_of(integers, decimals, floats)
zones = st.timezones() | st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29), timezones=zones)


def version(value: Any) -> tuple[Any, ...]:
    found = read_version(value)
    assert found is not None
    return found


def test_b033_numbers_in_text_are_compared_as_numbers() -> None:
    assert version("9") < version("10")
    assert version("999") < version("1000")
    assert version("10") > version("9")
    assert version("007") == version(7)
    assert version("-2") < version("-1.5") < version("0") < version("+0.5") < version(" 1 ")


def test_b032_times_with_and_without_a_zone_are_compared() -> None:
    written = ["2025-04-30T10:00:00", "2025-04-30T10:00:05+00:00", "2025-04-30T12:00:06+02:00"]
    versions = [version(text) for text in written]
    assert versions == sorted(versions)
    assert len(set(versions)) == 3


@pytest.mark.parametrize(
    "text",
    [
        "2025-04-30T10:00:00",
        "2025-04-30 10:00:00",
        "2025-04-30T10:00:00Z",
        "2025-04-30t10:00:00z",
        "2025-04-30 10:00:00 UTC",
        "2025-04-30T10:00:00.000000",
        "2025-04-30T10:00:00.0000000009Z",
        "2025-04-30T12:00:00+02:00",
        "2025-04-30T12:00:00+0200",
        "2025-04-30 06:30:00 -0330",
        " 2025-04-30T10:00:00Z\n",
    ],
)
def test_b032_a_time_in_any_spelling_is_the_same_version(text: str) -> None:
    assert version(text) == version(datetime(2025, 4, 30, 10, tzinfo=UTC)) == version(1746007200)


def test_a_day_is_its_first_moment() -> None:
    assert version(date(2025, 4, 30)) == version("2025-04-30") == version(datetime(2025, 4, 30))


@given(st.lists(numbers, min_size=2, max_size=10))
def test_the_order_is_that_of_the_numbers(values: list[Any]) -> None:
    exact = [Fraction(repr(value)) if isinstance(value, float) else Fraction(value) for value in values]
    for (left, a), (right, b) in itertools.combinations(zip(values, exact, strict=True), 2):
        assert (version(left) < version(right)) == (a < b)
        assert (version(left) == version(right)) == (a == b)


@given(st.lists(integers, min_size=2, max_size=6))
def test_the_order_is_that_of_the_numbers_when_they_are_texts(values: list[int]) -> None:
    assert sorted(values) == sorted(values, key=lambda value: version(str(value)))


@given(st.lists(moments, min_size=2, max_size=6))
def test_the_order_is_that_of_the_times(values: list[datetime]) -> None:
    for left, right in itertools.combinations(values, 2):
        assert (version(left) < version(right)) == (left.astimezone(UTC) < right.astimezone(UTC))
        assert version(left) == version(left.isoformat())


@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=6))
def test_tuples_are_compared_part_by_part(values: list[tuple[Any, Any]]) -> None:
    for left, right in itertools.combinations(values, 2):
        first, second = (version(part) for part in (left[0], right[0]))
        expected = first < second or (first == second and version(left[1]) < version(right[1]))
        assert (version(left) < version(list(right))) == expected


@given(numbers | moments.map(str))
def test_what_was_read_reads_as_itself(value: Any) -> None:
    assert read_version(read_version(value)) == read_version(value)


@given(moments)
def test_a_time_is_exact_whatever_the_decimal_context_of_the_thread(moment: datetime) -> None:
    expected = time_version(moment)
    with decimal.localcontext() as context:
        context.prec = 3
        assert time_version(moment) == expected
        assert version(moment.isoformat()) == (expected,)
    assert Fraction(expected) == Fraction(
        (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), 10**6
    )


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Count(int):
    def __str__(self) -> str:
        return "a count"


class Real(float):
    def __repr__(self) -> str:
        return "a real"


class Nowhere(tzinfo):
    def utcoffset(self, when: datetime | None) -> None:
        return None

    def dst(self, when: datetime | None) -> None:
        return None

    def tzname(self, when: datetime | None) -> None:
        return None


def test_kinds_of_numbers_and_times_of_other_libraries_are_read() -> None:
    assert version(Level.HIGH) == (2,)
    assert [str(part) for part in version((Count(3), Real(1.5)))] == ["3", "1.5"]
    assert version(datetime(2025, 4, 30, tzinfo=Nowhere())) == version("2025-04-30")


@pytest.mark.parametrize(
    "value",
    [
        "v1.2.3",
        "",
        " ",
        "1e5",
        "0x10",
        "NaN",
        "Infinity",
        "1,5",
        "\u0661",  # a digit, but of another script
        "9" * 121,
        "2025-13-01",
        "yesterday",
        "a\x00\ud83d",
        True,
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        Decimal("Infinity"),
        Decimal("1E+5000"),
        Decimal("1." + "1" * 20_000),
        10**120,
        (),
        [],
        (1, None),
        (1, (2,)),
        {},
        b"1",
        object(),
        1j,
    ],
)
def test_b032_what_cannot_be_compared_is_said_to_be_so(value: Any) -> None:
    with pytest.raises(UncomparableVersion) as caught:
        read_version(value)
    assert len(str(caught.value)) < 300


@given(st.text() | st.binary() | st.lists(st.text()) | st.dictionaries(st.text(), st.text()) | st.booleans())
def test_b032_whatever_a_sender_sends_is_a_version_or_is_said_to_be_none(value: Any) -> None:
    try:
        found = read_version(value)
    except UncomparableVersion:
        return
    assert found is not None
    assert all(isinstance(part, int | Decimal) for part in found)


def test_no_version_is_none() -> None:
    assert read_version(None) is None
    assert read_version(0) == (0,)


def test_only_versions_of_one_shape_are_comparable() -> None:
    assert comparable(version((1, 2)), version(("3", 4.5)))
    assert not comparable(version(1), version((1, 2)))


def test_only_a_time_is_ahead() -> None:
    now = datetime(2025, 4, 30, 10, tzinfo=UTC)
    assert seconds_ahead(version(now + timedelta(seconds=2)), now) == 2
    assert seconds_ahead(version("2099-01-01T00:00:00Z"), now) > 2e9
    assert seconds_ahead(version(now - HOUR), now) == 0
    assert seconds_ahead(version(10**18), now) == 0


@given(moments)
def test_a_time_is_shown_as_one(moment: datetime) -> None:
    shown = in_words(version(moment))
    if moment >= datetime(1970, 1, 1, tzinfo=UTC):
        assert datetime.fromisoformat(shown) == moment.astimezone(UTC)
    assert in_words(version(12)) == "12"
    assert in_words(None) == "none"
