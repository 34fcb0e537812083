"""How a worker works."""

from __future__ import annotations

from dataclasses import dataclass

from hookledger.errors import SetupError
from hookledger.operate.retention.horizons import Retention


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Settings of one worker process.

    Args:
        slots: batches that are worked on at a time, at the most; each takes a connection of the engine's pool. The next
            one begins only while those before mostly wait, as for a service that a handler asks.
        batch: deliveries that one claim takes at the most; fewer while handlers are slow.
        time_budget: seconds that the handlers of a batch may take; then it is committed and its rest given back.
        grace: seconds that running handlers get to end after `stop`.
        shortest_poll, longest_poll: bounds of the pause between two looks at an empty ledger, in seconds.
        revive_ignored: deliveries that were settled as ignored not longer ago than this, in seconds, are made pending
            if there is a handler for them: at the start, and now and then while the worker runs; 0 leaves them.
        listen: take NOTIFY as a hint; polling goes on in any case.
        make_partitions: make those of the payloads ahead; where the role may not, that is logged once.
        retention: prune what is over these horizons; the role must then own the tables. None prunes nothing.
        upkeep_every: seconds between two rounds of both.

    Raises:
        SetupError: for values that could not work.
    """

    slots: int = 4
    batch: int = 200
    time_budget: float = 1.0
    grace: float = 30.0
    shortest_poll: float = 0.05
    longest_poll: float = 1.0
    listen: bool = True
    make_partitions: bool = True
    retention: Retention | None = None
    upkeep_every: float = 3600.0
    revive_ignored: float = 86_400.0

    def __post_init__(self) -> None:
        if self.slots < 1 or self.batch < 1:
            raise SetupError("a worker needs 1 slot or more, and a batch of 1 or more")
        if not self.time_budget > 0 or not self.grace >= 0:
            raise SetupError("a worker needs a time budget above 0 and a grace time of 0 or more, in seconds")
        if not self.revive_ignored >= 0:
            raise SetupError("a worker needs revive_ignored of 0 or more, in seconds")
        if not 0 < self.shortest_poll <= self.longest_poll:
            raise SetupError("a worker needs 0 < shortest_poll <= longest_poll, in seconds")
        if not self.upkeep_every > 0:
            raise SetupError("a worker needs upkeep_every above 0, in seconds")
