"""When a failed delivery is given up, and how long it waits otherwise."""

from __future__ import annotations

import math
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger import Inbox, Reject, Retry, RetryPolicy
from hookledger.errors import UnreadableBody
from hookledger.retry import LONGEST_DELAY
from hookledger.worker.failing import delay, verdict
from hookledger.worker.outcome import DeathReason, Failure
from tests.unit.worker.deliveries import handler

INBOX = Inbox(retry=RetryPolicy(max_attempts=3))


def failure(error: BaseException, **policy: Any) -> Failure:
    return Failure(handler(retry=RetryPolicy(**policy) if policy else None), error)


@pytest.mark.parametrize(
    ("failures", "attempts", "expected"),
    [
        ([failure(ValueError())], 2, None),
        ([failure(ValueError())], 3, DeathReason.FAILED),
        ([failure(ValueError())], 4, DeathReason.FAILED),
        ([failure(Retry())], 3, DeathReason.FAILED),
        ([failure(Reject())], 1, DeathReason.REJECTED),
        ([failure(UnreadableBody())], 1, DeathReason.UNREADABLE),
        ([failure(UnreadableBody()), failure(Reject())], 1, DeathReason.REJECTED),
        ([failure(ValueError()), failure(Reject())], 1, DeathReason.REJECTED),
        ([failure(ValueError()), failure(ValueError(), max_attempts=5)], 3, None),
        ([failure(ValueError()), failure(ValueError(), max_attempts=5)], 5, DeathReason.FAILED),
        ([failure(ValueError(), max_attempts=1)], 1, DeathReason.FAILED),
    ],
)
def test_when_it_is_given_up(failures: list[Failure], attempts: int, expected: DeathReason | None) -> None:
    assert verdict(failures, attempts, INBOX) is expected


anything = st.one_of(
    st.none(), st.integers(), st.floats(), st.timedeltas(), st.text(), st.decimals(), st.booleans(), st.binary()
)


@given(anything, st.integers(1, 1000))
def test_whatever_is_asked_for_the_wait_is_one_that_a_calendar_holds(after: Any, attempts: int) -> None:
    error = Retry()
    error.after = after
    seconds = delay(Failure(handler(), error), RetryPolicy(), attempts, Random(1))
    assert math.isfinite(seconds)
    assert 0 <= seconds <= LONGEST_DELAY


@pytest.mark.parametrize("after", [90, 90.0, timedelta(seconds=90)])
def test_what_is_asked_for_is_given(after: Any) -> None:
    assert delay(Failure(handler(), Retry(after=after)), RetryPolicy(), 1, Random(1)) == 90


def test_only_retry_is_asked() -> None:
    error = ValueError()
    error.after = 90  # type: ignore[attr-defined]
    policy = RetryPolicy(first_delay=7, jitter=0)
    assert delay(Failure(handler(), error), policy, 1, Random(1)) == 7
