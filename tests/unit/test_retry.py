"""When a failed delivery is tried again."""

from __future__ import annotations

import math
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger.errors import SetupError
from hookledger.retry import RetryPolicy

chances = st.floats(0, 1, exclude_max=True)
policies = st.builds(
    RetryPolicy,
    first_delay=st.floats(0, 100),
    factor=st.floats(1, 1000),
    longest_delay=st.floats(100, 1e6),
    jitter=st.floats(0, 1),
)


@given(policies, st.integers(1, 10**9), chances)
def test_a_delay_lies_between_the_first_and_the_cap_with_its_jitter(
    policy: RetryPolicy, attempts: int, chance: float
) -> None:
    delay = policy.delay(attempts, chance)
    assert math.isfinite(delay)
    assert policy.first_delay <= delay <= policy.longest_delay * (1 + policy.jitter)


@given(policies, st.integers(1, 200))
def test_delays_do_not_shrink(policy: RetryPolicy, attempts: int) -> None:
    assert policy.delay(attempts, 0) <= policy.delay(attempts + 1, 0)


def test_the_default_doubles_from_five_seconds_to_an_hour() -> None:
    policy = RetryPolicy()
    assert [policy.delay(attempt, 0) for attempt in range(1, 13)] == [
        5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600,
    ]  # fmt: skip
    assert [policy.exhausted(attempt) for attempt in (1, 11, 12, 13)] == [False, False, True, True]
    assert RetryPolicy(max_attempts=1).exhausted(1)


@pytest.fixture(params=["Australia/Sydney", "America/Santiago", "Europe/Berlin"])
def time_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The zone of this process."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield os.environ["TZ"]
    monkeypatch.undo()
    time.tzset()


def test_b047_a_delay_is_in_seconds_wherever_and_whenever(time_zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = RetryPolicy(first_delay=300, jitter=0)
    for moment in (1720000000, 1736000000, 1729987190):  # July, January, the Berlin night of 2024-10-27
        monkeypatch.setattr(time, "time", lambda moment=moment: moment)
        assert policy.delay(1, 0.5) == 300


def test_b048_the_failures_of_one_outage_spread_over_a_quarter_of_the_delay() -> None:
    policy = RetryPolicy(first_delay=300)
    chance = random.Random(7)
    delays = [policy.delay(1, chance.random()) for _ in range(1000)]
    assert all(300 <= delay < 375 for delay in delays)
    crowd = Counter(int(delay) for delay in delays)
    assert len(crowd) == 75, "a part of them comes in every second"
    assert max(crowd.values()) < 40


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"max_attempts": 1.5},
        {"first_delay": -1},
        {"first_delay": 10, "longest_delay": 5},
        {"factor": 0.5},
        {"factor": 1e6},
        {"jitter": -0.1},
        {"jitter": 1.5},
        {"first_delay": math.nan},
        {"longest_delay": math.inf},
        {"factor": math.nan},
        {"jitter": math.nan},
        {"first_delay": "5"},
    ],
)
def test_settings_that_could_not_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SetupError):
        RetryPolicy(**options)
