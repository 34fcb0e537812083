"""What must come out of the traffic, computed from the events alone. Nothing of the product is used here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from hookledger.demo.traffic import Event, Kind

Resource = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class Total:
    """What the facts of a resource add up to: how many, and the sum of their numbers."""

    count: int = 0
    sum: int = 0

    def plus(self, event: Event) -> Total:
        """With one more event."""
        return Total(self.count + 1, self.sum + event.number)


@dataclass(frozen=True)
class Model:
    """The end state.

    Args:
        newest: for each resource that has a state, its snapshots of the highest moment. There may be several, since
            the providers' times have whole seconds: the rule is that of those the later arrival wins, and which
            that is only the receiver can tell.
        totals: for each resource that facts are added to, what they add up to.
    """

    newest: dict[Resource, tuple[Event, ...]] = field(default_factory=dict)
    totals: dict[Resource, Total] = field(default_factory=dict)


def expect(events: Iterable[Event]) -> Model:
    """The end state of these events, in whatever order and however often they come.

    Args:
        events: the different ones.
    """
    newest: dict[Resource, tuple[Event, ...]] = {}
    totals: dict[Resource, Total] = defaultdict(Total)
    for event in events:
        resource = (event.kind, event.resource)
        if not event.kind.is_snapshot:
            totals[resource] = totals[resource].plus(event)
            continue
        best = newest.get(resource, ())
        if not best or event.moment > best[0].moment:
            newest[resource] = (event,)
        elif event.moment == best[0].moment:
            newest[resource] = (*best, event)
    return Model(newest, dict(totals))
