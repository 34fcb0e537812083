"""When a failed delivery is tried again (D10). Pure: no clock and no random number of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hookledger.errors import SetupError

LONGEST_DELAY = 31_536_000.0  # seconds; a year
LARGEST_FACTOR = 1000.0  # to the power of 64 it still fits a float, here and in PostgreSQL


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with a cap and jitter.

    Args:
        max_attempts: after so many failed attempts the delivery becomes a dead letter; 1 means no retry.
        first_delay: seconds after the first failed attempt.
        factor: each further delay is that much longer.
        longest_delay: the cap, in seconds.
        jitter: a share of the delay, added at random, so that the failures of one outage spread: 0.25 puts
            the next attempt anywhere between the delay and the delay and a quarter.

    Raises:
        SetupError: for values that could not work.
    """

    max_attempts: int = 12
    first_delay: float = 5.0
    factor: float = 2.0
    longest_delay: float = 3600.0
    jitter: float = 0.25

    def __post_init__(self) -> None:
        if not isinstance(self.max_attempts, int) or self.max_attempts < 1:
            raise SetupError("a retry policy needs max_attempts of 1 or more, a whole number")
        numbers = (self.first_delay, self.factor, self.longest_delay, self.jitter)
        if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
            raise SetupError("a retry policy needs finite numbers; its delays are in seconds")
        if not 0 <= self.first_delay <= self.longest_delay <= LONGEST_DELAY:
            raise SetupError("a retry policy needs 0 <= first_delay <= longest_delay <= a year, in seconds")
        if not 1 <= self.factor <= LARGEST_FACTOR or not 0 <= self.jitter <= 1:
            raise SetupError("a retry policy needs factor between 1 and 1000, and jitter between 0 and 1")

    def delay(self, attempts: int, chance: float) -> float:
        """Seconds until the next attempt.

        Args:
            attempts: attempts made so far, 1 or more.
            chance: a number in [0, 1) that places the attempt within the jitter.
        """
        # The exponent is bounded so that a large count cannot overflow a float.
        grown = self.first_delay * self.factor ** min(max(attempts, 1) - 1, 64)
        return min(self.longest_delay, grown) * (1 + self.jitter * chance)

    def exhausted(self, attempts: int) -> bool:
        """Whether a delivery that failed for the `attempts`-th time is given up."""
        return attempts >= self.max_attempts
