"""What is going to happen, from a seed: the events that are sent and how, and the faults with their times.

The same seed gives the same plan.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from random import Random

from tests.faults.books import Event
from tests.faults.hooks import FAILS_ONCE, REJECTED

PLAIN, SLOW, HUGE, POISON = "thing", "slow", "huge", "poison"
DOOMED = frozenset({REJECTED, POISON})
"""Types of events that become dead letters."""

EVENTS_A_SECOND = 30.0
RESOURCES = 12
LARGE = 1_500_000
"""Bytes that are added to a huge body."""

FIRST_FAULT = 3.0
SHORTEST_GAP, LONGEST_GAP = 0.3, 2.2
"""Seconds between two faults."""

POISON_EVERY = 40.0
POISON_UNTIL = 0.5
"""Seconds between two events that end the process, and the part of the run in which there are any: each needs some
restarts and some delays until it is given up."""


class Fault(enum.StrEnum):
    """What is done to the deployment."""

    WORKER_KILLED = "worker killed"
    WORKER_STOPPED = "worker stopped"
    WORKER_FROZEN = "worker frozen"
    RECEIVER_KILLED = "receiver killed"
    RECEIVER_STOPPED = "receiver stopped"
    RESTARTED_FAST = "PostgreSQL restarted fast"
    RESTARTED_IMMEDIATE = "PostgreSQL restarted immediate"
    POWER_FAILED = "PostgreSQL killed"
    BACKEND_TERMINATED = "backend terminated"
    RECEIVERS_SILENT = "network of the receivers silent"
    WORKERS_SILENT = "network of the workers silent"
    FORGOTTEN = "connections forgotten by the network"
    READ_ONLY = "server read-only"
    CONNECTIONS_USED_UP = "connections used up"
    TABLE_LOCKED = "table locked"


WEIGHTS = {
    Fault.WORKER_KILLED: 8,
    Fault.WORKER_STOPPED: 4,
    Fault.WORKER_FROZEN: 2,
    Fault.RECEIVER_KILLED: 4,
    Fault.RECEIVER_STOPPED: 3,
    Fault.RESTARTED_FAST: 2,
    Fault.RESTARTED_IMMEDIATE: 2,
    Fault.POWER_FAILED: 2,
    Fault.BACKEND_TERMINATED: 16,
    Fault.RECEIVERS_SILENT: 2,
    Fault.WORKERS_SILENT: 2,
    Fault.FORGOTTEN: 1,
    Fault.READ_ONLY: 2,
    Fault.CONNECTIONS_USED_UP: 2,
    Fault.TABLE_LOCKED: 3,
}
LONGEST = {
    Fault.WORKER_FROZEN: 7.0,
    Fault.RECEIVERS_SILENT: 4.0,
    Fault.WORKERS_SILENT: 7.0,
    Fault.READ_ONLY: 3.0,
    Fault.CONNECTIONS_USED_UP: 3.0,
    Fault.TABLE_LOCKED: 3.0,
}
"""Seconds that those take which take time, at the most."""


@dataclass(frozen=True)
class Planned:
    """A fault.

    Args:
        at: seconds from the start.
        fault: which.
        seconds: how long it lasts; 0 if it has no length.
        chance: a number in [0, 1) that says on what it falls.
    """

    at: float
    fault: Fault
    seconds: float
    chance: float


class Sent(Event):
    """An event of the soak; a huge one has a body of its own length."""

    __slots__ = ()

    @property
    def body(self) -> bytes:
        """The bytes to send."""
        plain = super().body
        return plain if self.type != HUGE else plain[:-1] + b', "filling": "' + b"x" * LARGE + b'"}'


class Manner(enum.StrEnum):
    """How an event is sent."""

    ONCE = "once"
    AGAIN = "again"
    AT_ONCE = "twice at once"
    BROKEN_OFF = "broken off, then whole"
    FORGED = "with a bad signature"
    TOO_LARGE = "with a length beyond the limit"


MANNERS = {
    Manner.ONCE: 60,
    Manner.AGAIN: 16,
    Manner.AT_ONCE: 10,
    Manner.BROKEN_OFF: 6,
    Manner.FORGED: 5,
    Manner.TOO_LARGE: 3,
}
TYPES = {PLAIN: 200, FAILS_ONCE: 10, REJECTED: 3, SLOW: 4, HUGE: 1}


@dataclass(frozen=True)
class Sending:
    """An event, when it is sent first, how, and to which receiver."""

    at: float
    event: Sent
    manner: Manner
    chance: float


@dataclass(frozen=True)
class Plan:
    """All of it."""

    seed: int
    seconds: float
    sendings: tuple[Sending, ...]
    faults: tuple[Planned, ...]


def make_plan(seed: int, seconds: float) -> Plan:
    """The plan of a seed.

    Args:
        seed: any number.
        seconds: for how long there are faults.
    """
    return Plan(seed, seconds, _sendings(Random(f"traffic {seed}"), seconds), _faults(Random(f"{seed}"), seconds))


def _sendings(random: Random, seconds: float) -> tuple[Sending, ...]:
    count = int(seconds * EVENTS_A_SECOND)
    poison = {int(at * EVENTS_A_SECOND) for at in _every(POISON_EVERY, seconds * POISON_UNTIL)}
    sendings = []
    for number in range(count):
        type = POISON if number in poison else random.choices([*TYPES], [*TYPES.values()])[0]
        # Out of order, some far late; and few enough numbers that there are ties.
        version = max(0, number - random.choice((0, 1, 2, 5, 20, 200))) // 3
        event = Sent(f"e{number}", f"r{random.randrange(RESOURCES)}", version, type)
        manner = random.choices([*MANNERS], [*MANNERS.values()])[0]
        sendings.append(Sending(number / EVENTS_A_SECOND, event, manner, random.random()))
    return tuple(sendings)


def _every(seconds: float, until: float) -> list[float]:
    return [1.0 + seconds * number for number in range(int(until / seconds) + 1)]


def _faults(random: Random, seconds: float) -> tuple[Planned, ...]:
    faults = []
    # Each once, then at random: a short run has all of them too, if it has the time.
    first = list(Fault)
    random.shuffle(first)
    at = FIRST_FAULT
    while at < seconds:
        fault = first.pop() if first else random.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
        longest = LONGEST.get(fault, 0.0)
        lasts = random.uniform(longest / 4, longest)
        faults.append(Planned(at, fault, lasts, random.random()))
        at += random.uniform(SHORTEST_GAP, LONGEST_GAP) + lasts / 2
    return tuple(faults)
