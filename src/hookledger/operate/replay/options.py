"""How a replay goes: how fast, how carefully, and how many deliveries at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hookledger.errors import SetupError

_RATE = re.compile(r"(\d{1,9}(?:\.\d+)?)\s*(?:/\s*(s|sec|second|min|minute|h|hour))?")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_SHARE = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%")


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one run.

    Args:
        rate: deliveries a second at the most; None is as fast as the workers go.
        canary: how many go first; the others follow only if each of these ends well. 0 for none.
        max_failures: the share, from 0 to 1, of failed ones above which the run ends by itself; None for no bound.
        max_failed: the number of failed ones above which it ends; None for no bound.
        most_pending: how many deliveries of this replay wait for their first attempt at the same time, at the most; so
            many may come before a delivery that has just been received. 0 for no bound.
        batch: deliveries that one transaction makes pending, at the most.

    Raises:
        SetupError: for values that could not work.
    """

    rate: float | None = None
    canary: int = 0
    max_failures: float | None = None
    max_failed: int | None = None
    most_pending: int = 200
    batch: int = 200

    def __post_init__(self) -> None:
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise SetupError("the rate of a replay must be above 0 deliveries a second")
        if self.canary < 0 or self.most_pending < 0 or not 1 <= self.batch <= 10_000:
            raise SetupError(
                "a replay needs a canary and a bound of pending ones of 0 or more, and a batch of 1 to 10,000"
            )
        if self.max_failures is not None and not 0 <= self.max_failures <= 1:
            raise SetupError("the share of failures lies between 0% and 100%")
        if self.max_failed is not None and self.max_failed < 0:
            raise SetupError("the number of failures must be 0 or more")

    def as_document(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Options:
        """The options of which `as_document` gave this."""
        return cls(**document)


def read_rate(written: str) -> float:
    """Deliveries a second.

    Args:
        written: "200/s", "600/min", "200".

    Raises:
        SetupError: if it is not so.
    """
    found = _RATE.fullmatch(written.strip().lower())
    if found is None or not float(found[1]):
        raise SetupError(f"{written!r} is no rate: write 200/s or 600/min")
    return float(found[1]) / _SECONDS[(found[2] or "s")[0]]


def read_max_failures(written: str) -> tuple[float | None, int | None]:
    """The share of failed deliveries, or their number, above which a replay ends.

    Args:
        written: "5%" or "10".

    Raises:
        SetupError: if it is neither.
    """
    text = written.strip()
    if share := _SHARE.fullmatch(text):
        if float(share[1]) <= 100:
            return float(share[1]) / 100, None
    elif text.isdecimal() and len(text) < 10:
        return None, int(text)
    raise SetupError(f"{written!r} is no bound of failures: write 5% or 10")
