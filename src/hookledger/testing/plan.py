"""A sequence of arrivals and of what workers do in between: what a search for mistakes varies. Pure values."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple


class Then(enum.Enum):
    """What happens after an arrival. The simplest first: that is how a sequence is made smaller."""

    NEXT = "the next one comes"
    TOGETHER = "a worker takes all of it into one transaction"
    ALONE = "a worker takes one delivery a transaction"
    CLAIMED = "a worker dies after it has claimed them, before any handler runs"
    WORKED = "a worker dies after its handlers have run, before their commit: PostgreSQL takes their writes back"
    COMMITTED = "a worker dies after the commit, before it has the answer"
    IN_STEP = "two workers run at the same time, statement by statement in turns"
    BEFORE_SECOND = "two workers run at the same time: the first waits before its 2nd statement until the other is done"
    BEFORE_THIRD = "two workers run at the same time: the first waits before its 3rd statement until the other is done"
    BEFORE_FOURTH = "two workers run at the same time: the first waits before its 4th statement until the other is done"


DEATHS = (Then.CLAIMED, Then.WORKED, Then.COMMITTED)
OVERLAPS = {Then.IN_STEP: None, Then.BEFORE_SECOND: 2, Then.BEFORE_THIRD: 3, Then.BEFORE_FOURTH: 4}
"""Before which of its statements the first worker waits for the second; None: before each."""


class Round(NamedTuple):
    """Deliveries that come one after the other, by their number, and what workers then do with what is pending."""

    arrivals: tuple[int, ...]
    then: Then


class Plan(NamedTuple):
    """A sequence.

    Args:
        steps: the number of a delivery that comes, and what happens after it.
        days_apart: whether a day and some hours lie between one arrival and the next.
    """

    steps: tuple[tuple[int, Then], ...]
    days_apart: bool = False

    @property
    def arrivals(self) -> tuple[int, ...]:
        """All that come, in their order, with repeats."""
        return tuple(number for number, _ in self.steps)

    @property
    def rounds(self) -> list[Round]:
        """The same, cut where workers run; they always do at the end."""
        rounds: list[Round] = []
        gathered: list[int] = []
        for position, (number, then) in enumerate(self.steps, 1):
            gathered.append(number)
            if then is Then.NEXT and position == len(self.steps):
                then = Then.TOGETHER
            if then is not Then.NEXT:
                rounds.append(Round(tuple(gathered), then))
                gathered = []
        return rounds

    def with_deaths(self, most: int) -> Plan:
        """The same with so many deaths of a worker at the most: a delivery whose worker dies more often than its retry
        policy allows is given up, and that is no mistake of a handler."""
        steps: list[tuple[int, Then]] = []
        for number, then in self.steps:
            if then in DEATHS:
                most -= 1
                if most < 0:
                    then = Then.TOGETHER
            steps.append((number, then))
        return self._replace(steps=tuple(steps))


def once_each(order: Sequence[int]) -> Plan:
    """Each delivery once, in that order, and each settled before the next one is taken."""
    *before, last = order
    return Plan((*((number, Then.NEXT) for number in before), (last, Then.ALONE)))


def reference_order(arrivals: Sequence[int], tied: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """The order in which the deliveries of a sequence come in what it is compared with: that in which they were given.

    Only those that are tied, snapshots of one resource with one version, keep the order of the sequence among
    themselves, because of two equal versions the later arrival wins.

    Args:
        arrivals: of the sequence, with repeats.
        tied: sets of deliveries that are tied; disjoint.
    """
    arrived = list(dict.fromkeys(arrivals))
    order = sorted(arrived)
    for group in tied:
        places = [place for place, number in enumerate(order) if number in group]
        among_them = [number for number in arrived if number in group]
        for place, number in zip(places, among_them, strict=True):
            order[place] = number
    return tuple(order)
