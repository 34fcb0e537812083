"""What can become of a delivery, as the worker passes it on from step to step."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from hookledger.delivery import Delivery
from hookledger.handlers import Handler
from hookledger.version import Version


class Outcome(enum.StrEnum):
    """What a handler's row in the effects says."""

    APPLIED = "applied"
    STALE = "stale"
    SUPERSEDED = "superseded"
    IGNORED = "ignored"


class DeathReason(enum.StrEnum):
    """Why a delivery became a dead letter."""

    CRASHED = "crashed"
    FAILED = "failed"
    REJECTED = "rejected"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that is ours until the due time that the claim wrote.

    Args:
        delivery: as the handler will see it.
        attempts: the count that the claim wrote; the fence that tells our claim from a later one.
        last_error: what the row said before the claim, restored if it is given back.
        handlers: those that match.
        has_payload: False once retention has dropped the bytes.
    """

    delivery: Delivery
    attempts: int
    last_error: str | None
    handlers: tuple[Handler, ...]
    has_payload: bool = True


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A delivery as one snapshot handler orders it."""

    claimed: Claimed
    handler: Handler
    resource: str
    version: Version
    deleted: bool

    @property
    def rank(self) -> tuple[Version, int]:
        """What is compared: the higher version wins, on equal versions the later arrival."""
        return self.version, self.claimed.delivery.id


@dataclass(frozen=True, slots=True)
class Failure:
    """A handler that failed for a delivery."""

    handler: Handler
    error: BaseException


@dataclass(frozen=True, slots=True)
class Settled:
    """What one handler did with one delivery, told to observers after the commit.

    Args:
        outcome: applied, stale, superseded, ignored; or failed, or dead with the reason.
        error: what went wrong, in one line.
    """

    delivery_id: int
    source: str
    event_id: str
    event_type: str
    resource: str | None
    handler: str
    outcome: str
    attempt: int
    error: str | None = None


@dataclass(slots=True)
class BatchReport:
    """What one transaction did, for the log, the observers and the size of the next batch."""

    settled: list[Settled] = field(default_factory=list)
    handlers_run: int = 0
    given_back: int = 0
    lost: int = 0
