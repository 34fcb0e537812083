"""How long payloads, deliveries and effects are kept, and what is too short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, func, select

from hookledger.errors import SetupError
from hookledger.inbox import Inbox
from hookledger.ledger.schema import Tables
from hookledger.operate.spans import LONGEST
from hookledger.sources.retry_times import retry_time, retry_time_of_name

NEVER = None


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what is settled is kept; None for ever.

    Args:
        payloads: headers and bodies. A delivery without them cannot be replayed.
        deliveries: the rows by which a copy is known, with their redeliveries and failures.
        effects: the outcomes. As long as they stay, an event that comes again is not applied a second time, even if
            its delivery is gone.
        quarantine: refused requests that were kept, whatever became of them.
        force: take horizons that are shorter than the senders' own time of sending again.

    Raises:
        SetupError: for horizons that contradict each other.
    """

    payloads: timedelta | None = NEVER
    deliveries: timedelta | None = NEVER
    effects: timedelta | None = NEVER
    quarantine: timedelta | None = NEVER
    force: bool = False

    def __post_init__(self) -> None:
        for name, horizon in self.named.items():
            if horizon is not None and horizon <= timedelta(0):
                raise SetupError(f"the horizon of the {name} must be longer than nothing")
            if horizon is not None and horizon > LONGEST:
                raise SetupError(f"the horizon of the {name} is longer than a hundred years: leave it out")
        if self.deliveries is not None and (self.payloads is None or self.payloads > self.deliveries):
            raise SetupError("payloads cannot be kept longer than their deliveries: give a shorter horizon for them")
        if self.effects is not None and (self.deliveries is None or self.deliveries > self.effects):
            raise SetupError("deliveries cannot be kept longer than their effects: give a shorter horizon for them")

    @property
    def named(self) -> Mapping[str, timedelta | None]:
        """The horizons by what they are of."""
        return {
            "payloads": self.payloads,
            "deliveries": self.deliveries,
            "effects": self.effects,
            "quarantine": self.quarantine,
        }

    @property
    def shortest(self) -> tuple[str, timedelta] | None:
        """What is forgotten first of what a copy is known by; None if all of it stays."""
        named = [
            (name, horizon) for name, horizon in self.named.items() if horizon is not None and name != "quarantine"
        ]
        return min(named, key=lambda each: each[1], default=None)

    def require(self, retry_times: Mapping[str, timedelta]) -> None:
        """See that no sender may send again what is forgotten already.

        Args:
            retry_times: for how long each source sends again, by its name.

        Raises:
            SetupError: if one may, unless `force` is set.
        """
        shortest = self.shortest
        if shortest is None or self.force or not retry_times:
            return
        name, horizon = shortest
        longest = max(retry_times, key=lambda source: retry_times[source])
        if horizon < retry_times[longest]:
            raise SetupError(
                f"{name} cannot be forgotten after {in_words(horizon)}: the source {longest!r} may send an event again "
                f"for {in_words(retry_times[longest])}; give a longer horizon, or --force if it does not"
            )


def sources_in(connection: Connection, t: Tables) -> list[str]:
    """The names of the sources that the ledger has deliveries of: a look into the index for each."""
    d = t.deliveries.c
    first = select(func.min(d.source).label("source")).cte("source", recursive=True)
    after = select(select(func.min(d.source)).where(d.source > first.c.source).scalar_subquery()).where(
        first.c.source.is_not(None)
    )
    found = first.union_all(after)
    return list(connection.scalars(select(found.c.source).where(found.c.source.is_not(None))))


def retry_times(names: list[str], inbox: Inbox | None = None) -> dict[str, timedelta]:
    """For how long each source sends again.

    Args:
        names: of the sources.
        inbox: tells their providers; without it, or for a source that it does not have, the name has to.
    """
    known = {} if inbox is None else inbox.sources
    return {
        name: retry_time(known[name].provider) if name in known else retry_time_of_name(name)
        for name in {*names, *known}
    }


def in_words(span: timedelta) -> str:
    """A span of time in days or hours."""
    days = span / timedelta(days=1)
    if days >= 2 and days == int(days):
        return f"{int(days)} days"
    hours = f"{span / timedelta(hours=1):g}"
    return "1 hour" if hours == "1" else f"{hours} hours"
