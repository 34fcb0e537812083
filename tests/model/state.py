"""What the model knows: rows of pending, what is committed, where each worker stands."""

from __future__ import annotations

import enum
from typing import NamedTuple

PENDING, DEAD, SETTLED = "pending", "dead", "settled"
UNMOVED = -1
"""In place of a watermark that was not written."""


class Row(NamedTuple):
    """Where a delivery is, and its row of pending."""

    place: str = PENDING
    attempts: int = 0
    error: bool = False
    due: bool = True
    revisited: bool = False


class Claim(NamedTuple):
    """A delivery as a claim found it; `attempts` is what the claim wrote, `error` whether there was one before."""

    delivery: int
    attempts: int
    error: bool
    crashed: bool
    revisited: bool


class Kind(enum.StrEnum):
    """What a transaction is for."""

    CLAIM = "claim"
    TOGETHER = "together"
    ALONE = "alone"
    CHARGE = "charge"
    BURY = "bury"
    BACK = "back"
    REFUND = "refund"
    NOTHING = "nothing"


class Job(NamedTuple):
    """A transaction to be done; `refund` is what giving back takes off the attempts of what was charged."""

    kind: Kind = Kind.NOTHING
    claims: tuple[Claim, ...] = ()
    refund: int = 0


class Effect(NamedTuple):
    """What a transaction wrote for a delivery, as bits a handler: the ledger's rows, and what the handlers did."""

    delivery: int
    ledger: int
    done: int


class Writes(NamedTuple):
    """What a transaction has written and not committed."""

    rows: tuple[tuple[int, Row], ...] = ()
    effects: tuple[Effect, ...] = ()
    mark: int = UNMOVED


class At(enum.StrEnum):
    """Where a worker stands."""

    IDLE = "idle"
    LOOKED = "looked"
    BEGUN = "begun"
    MISSED = "missed"
    WAITING = "waiting"
    OVERTAKEN = "overtaken"
    LET_GO = "let go"
    HELD = "held"
    LOCKED = "locked"
    WRITTEN = "written"
    GONE = "gone"


class Worker(NamedTuple):
    """One worker, with its connection.

    Args:
        at: where it stands.
        job: its open transaction.
        later: those that follow.
        taken: `Cycle.taken`: what it has claimed and whose end it has not seen committed.
        held: the rows that its transaction has locked to work on them.
        kept: rows that it has locked and may not work on, since they changed while it waited.
        rest: those that the claim saw due, or that hold waits for.
        before: those that were held before it waited; for a claim, those that have changed since it saw them.
        read: the watermark that it read.
        writes: what is not committed.
    """

    at: At = At.IDLE
    job: Job = Job()
    later: tuple[Job, ...] = ()
    taken: tuple[Claim, ...] = ()
    held: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    rest: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    read: int = 0
    writes: Writes = Writes()


class Faults(NamedTuple):
    """How often each may still happen."""

    crashes: int = 0
    losses: int = 0
    restarts: int = 0
    stalls: int = 0
    conflicts: int = 0
    revivals: int = 0


class State(NamedTuple):
    """All of it.

    Args:
        rows: as they are committed, by delivery.
        ledger: bits of the handlers whose outcome is in effects, by delivery.
        done: how often each handler's own writes were committed, by delivery.
        mark: the watermark of the one resource.
        undo: the row that a restart would bring back, where only a claim has changed it since.
        workers: in a fixed order of their values, since it does not matter which is which.
        left: the faults that may still come.
        flaw: what a step did that must never be done.
    """

    rows: tuple[Row, ...]
    ledger: tuple[int, ...]
    done: tuple[tuple[int, ...], ...]
    mark: int
    undo: tuple[Row | None, ...]
    workers: tuple[Worker, ...]
    left: Faults
    flaw: str = ""


class Rules(NamedTuple):
    """What the protocol does. Each can be switched off, to see that it is needed."""

    fence: bool = True
    fence_sees_error: bool = True
    hold_locks: bool = True
    hold_waits: bool = True
    overtaken_let_go: bool = True
    materialized: bool = True
    effects_inside: bool = True
    claims_write_due: bool = True
    crashed_charged_alone: bool = True
    charge_commits_first: bool = True
    watermark_locked: bool = True
    taken_before_commit: bool = True


class Setting(NamedTuple):
    """What is explored.

    Args:
        name: for people.
        deliveries: of each, what its handlers do: "good", "fails" (or not) or "poison" (ends the process).
        versions: of each delivery, if they are snapshots of one resource; else none.
        workers: how many.
        batch: what a claim takes at the most.
        max_attempts: of the retry policy.
        stops: whether work may be given back, as by SIGTERM or for want of time.
        faults: those that may come.
        rules: of the protocol.
    """

    name: str
    deliveries: tuple[tuple[str, ...], ...]
    versions: tuple[int, ...] = ()
    workers: int = 2
    batch: int = 2
    max_attempts: int = 2
    stops: bool = False
    faults: Faults = Faults()
    rules: Rules = Rules()

    @property
    def enough(self) -> int:
        """After how many attempts a delivery that crashed is given up."""
        return max(self.max_attempts, 2)

    def start(self) -> State:
        """All deliveries are recorded, and all workers idle."""
        count = len(self.deliveries)
        return State(
            rows=(Row(),) * count,
            ledger=(0,) * count,
            done=tuple((0,) * len(handlers) for handlers in self.deliveries),
            mark=0,
            undo=(None,) * count,
            workers=(Worker(),) * self.workers,
            left=self.faults,
        )


class Step(NamedTuple):
    """A step that can be taken: by which worker (-1: none), on what, to which state; whether it is a fault."""

    name: str
    worker: int
    detail: tuple[int, ...]
    state: State
    fault: bool = False
