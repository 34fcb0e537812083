"""What can become of a delivery, as the worker passes it on from step to step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from hookledger.delivery import Delivery
from hookledger.handlers import Handler
from hookledger.ledger.arrays import version_text
from hookledger.ledger.rows import StateKey
from hookledger.outcomes import DeathReason as DeathReason
from hookledger.outcomes import Outcome as Outcome
from hookledger.version import Version
from hookledger.worker.fingerprint import in_words
from hookledger.worker.raised import Place, place_of


class Claimed(NamedTuple):
    """A delivery that is ours until the due time that the claim wrote.

    Args:
        delivery: as the handler will see it.
        attempts: the count that the claim wrote; the fence that tells our claim from a later one.
        last_error: what the row said before the claim, restored if it is given back.
        handlers: those that match.
        has_payload: False once retention has dropped the bytes.
        revisited: whether the delivery was claimed, settled or dead before, so that it may have effects already.
        version_text: its version as the ledger's statements take it.
        paused: names under which handlers that match too are paused.
    """

    delivery: Delivery
    attempts: int
    last_error: str | None
    handlers: tuple[Handler, ...]
    has_payload: bool = True
    revisited: bool = True
    version_text: str = ""
    paused: frozenset[str] = frozenset()


class Snapshot(NamedTuple):
    """A delivery as one snapshot handler orders it.

    Args:
        state_key: the row of resource_state that it is about.
        rank: what is compared: the higher version wins, on equal versions the later arrival.
        version_text: the version as the ledger's statements take it.
    """

    claimed: Claimed
    handler: Handler
    state_key: StateKey
    rank: tuple[Version, int]
    version_text: str
    deleted: bool

    @classmethod
    def of(cls, claimed: Claimed, handler: Handler, resource: str, version: Version, *, deleted: bool) -> Snapshot:
        """The snapshot of a delivery."""
        delivery = claimed.delivery
        written = claimed.version_text if version is delivery.version else ""
        return cls(
            claimed,
            handler,
            (handler.name, delivery.source, resource),
            (version, delivery.id),
            written or version_text(version) or "",
            deleted,
        )

    @property
    def resource(self) -> str:
        """What it is about."""
        return self.state_key[2]

    @property
    def version(self) -> Version:
        """What orders it."""
        return self.rank[0]


@dataclass(frozen=True, slots=True)
class Failure:
    """A handler that failed for a delivery.

    Args:
        error: what it raised, or what was wrong with how it left the transaction.
        first: the database error before it that the handler had caught, if that spoiled its writes.
    """

    handler: Handler
    error: BaseException
    first: BaseException | None = None

    @property
    def words(self) -> str:
        """The error in words, with its first cause."""
        told = in_words(self.error)
        return told if self.first is None else f"{told}; the first error was: {in_words(self.first)}"

    @property
    def place(self) -> Place | None:
        """Where it came out of the handler's code; of an error that hookledger raised itself, its first cause."""
        place = place_of(self.error, self.handler.function)
        return place_of(self.first, self.handler.function) if place is None and self.first is not None else place


@dataclass(frozen=True, slots=True)
class Settled:
    """What one handler did with one delivery, told to observers after the commit.

    Args:
        outcome: applied, stale, superseded, ignored; or failed, or dead with the reason.
        error: what went wrong; the first line says it.
        place: where that came out of the handler's code.
        raised: the error itself, with its traceback, where the log is to have it.
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
    place: str | None = None
    raised: BaseException | None = field(default=None, repr=False, compare=False)


@dataclass(slots=True)
class BatchReport:
    """What one transaction did, for the log, the observers and the size of the next batch."""

    settled: list[Settled] = field(default_factory=list)
    given_back: int = 0
    lost: int = 0


def told(
    delivery: Delivery,
    handler: str,
    outcome: str,
    *,
    resource: str | None = None,
    error: str | None = None,
    place: Place | None = None,
    raised: BaseException | None = None,
) -> Settled:
    """What observers and the log are told of a delivery."""
    return Settled(
        delivery.id,
        delivery.source,
        delivery.event_id,
        delivery.event_type,
        resource or delivery.resource,
        handler,
        outcome,
        delivery.attempt,
        error,
        None if place is None else str(place),
        raised,
    )
