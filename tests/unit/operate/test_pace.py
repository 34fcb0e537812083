"""Rates, and how options are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger import SetupError
from hookledger.operate.replay.options import Options, read_max_failures, read_rate
from hookledger.operate.replay.pace import BURST, Pace


@given(
    rate=st.floats(0.1, 10_000),
    steps=st.lists(st.tuples(st.floats(0, 5), st.integers(1, 500)), min_size=1, max_size=50),
)
def test_no_more_than_the_rate_ever_goes(rate: float, steps: list[tuple[float, int]]) -> None:
    now = 100.0
    pace = Pace(rate, now)
    took = 0
    for pause, most in steps:
        now += pause
        allowed = pace.allowed(now, most)
        assert 0 <= allowed <= most
        pace.took(allowed)
        took += allowed
        assert took <= (now - 100.0) * rate + max(1.0, rate * BURST) + 1e-6
        assert pace.pause() <= 1 / rate + 1e-9


def test_it_goes_on_after_a_pause() -> None:
    pace = Pace(2.0, 0.0)
    assert pace.allowed(0.0, 10) == 1
    pace.took(1)
    assert pace.allowed(0.1, 10) == 0
    assert pace.pause() == pytest.approx(0.4)
    assert pace.allowed(0.6, 10) == 1


def test_without_a_rate_all_may_go() -> None:
    pace = Pace(None, 0.0)
    assert pace.allowed(0.0, 200) == 200
    pace.took(200)
    assert (pace.allowed(0.0, 200), pace.pause()) == (200, 0.0)


@pytest.mark.parametrize(
    ("written", "rate"), [("200/s", 200), ("600/min", 10), ("7200/h", 2), ("5", 5), (" 2.5 / sec ", 2.5)]
)
def test_rates_are_read(written: str, rate: float) -> None:
    assert read_rate(written) == rate


@pytest.mark.parametrize("written", ["", "0/s", "-1/s", "fast", "1/day", "1e9/s", "∞/s", "nan"])
def test_what_is_no_rate_is_refused(written: str) -> None:
    with pytest.raises(SetupError, match="write 200/s"):
        read_rate(written)


def test_bounds_of_failures_are_read() -> None:
    assert read_max_failures("5%") == (0.05, None)
    assert read_max_failures("0%") == (0.0, None)
    assert read_max_failures("10") == (None, 10)
    for written in ("", "101%", "-1", "a", "5 %%"):
        with pytest.raises(SetupError, match="write 5% or 10"):
            read_max_failures(written)


def test_options_survive_their_document() -> None:
    options = Options(rate=1.5, canary=2, max_failures=0.1, max_failed=3, most_pending=4, batch=5)
    assert Options.of_document(options.as_document()) == options
