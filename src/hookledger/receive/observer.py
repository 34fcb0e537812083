"""Being told what becomes of requests, as the `dev` command is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hookledger.receive.accept import Accepted
from hookledger.receive.line import Entry
from hookledger.receive.waiter import Outcome


class Observer(Protocol):
    """Is told, from any thread; must not block and must not raise."""

    def received(self, accepted: Accepted, outcome: Outcome) -> None:
        """A request is committed: its events are new, or had been sent before."""
        ...

    def refused(self, source: str, status: int, reason: str) -> None:
        """A request did not get in."""
        ...


def tell(observer: Observer, entries: Sequence[Entry], outcomes: Sequence[Outcome | Exception]) -> None:
    """Tell of what is committed; what was not is told as refused when it is answered."""
    for entry, outcome in zip(entries, outcomes, strict=True):
        if not isinstance(outcome, Exception):
            observer.received(entry.accepted, outcome)
