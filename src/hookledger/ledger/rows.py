"""The rows that the statements are given and that they return, and the keys by which their callers find them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from hookledger.version import Version

StateKey = tuple[str, str, str]
"""(handler, source, resource)"""

EffectKey = tuple[str, str, str]
"""(handler, source, event_id)"""

Position = tuple[datetime, int]
"""(due_at, delivery id): a place in the index that claims go by."""


class NewRequest(NamedTuple):
    """A payload to record: its headers as JSON text, and the exact bytes."""

    headers: str
    body: bytes


class EarlierRequest(NamedTuple):
    """As NewRequest, with the time at which it came."""

    headers: str
    body: bytes
    received_at: datetime


class NewEvent(NamedTuple):
    """A delivery to record; `request` is the index, from 1, of the payload that carries it."""

    request: int
    source: str
    event_id: str
    event_type: str
    resource: str | None
    version: str | None
    position: int
    digest: bytes
    unreadable: str | None


class Copy(NamedTuple):
    """An event that the ledger knows already, as it came again."""

    source: str
    event_id: str
    digest: bytes
    headers: str
    body: bytes


class Repeated(NamedTuple):
    """What became of a copy."""

    delivery_id: int
    differs: bool
    revived: bool


class ClaimedRow(NamedTuple):
    """A row of `claim`, in the order of its columns. `version` is the text of a numeric[]. `size` is that of the body,
    None once retention has dropped it; the body of a large one is not there yet."""

    id: int
    source: str
    event_id: str
    event_type: str
    resource: str | None
    version: str | None
    received_at: datetime
    position: int
    payload_id: int
    headers: str | None
    size: int | None
    body: bytes | None
    attempts: int
    last_error: str | None
    crashed: bool
    revisited: bool
    look_from: datetime
    synchronous_commit: str
    pauses: str | None = None


class IgnoredRow(NamedTuple):
    """A delivery that was settled as ignored; `recent` if that is not long ago."""

    id: int
    source: str
    event_type: str
    recent: bool


class NewEffect(NamedTuple):
    """An outcome to write."""

    source: str
    event_id: str
    handler: str
    delivery_id: int
    outcome: str
    version: str | None


class LockedStates(NamedTuple):
    """Resource states that are locked: their watermarks, and where in the table each row is until the transaction
    ends."""

    watermarks: dict[StateKey, Watermark]
    places: dict[StateKey, str]


class NewState(NamedTuple):
    """A watermark to move, with the state if the handler gave one; `place` is where its row is locked."""

    handler: str
    source: str
    resource: str
    version: str
    delivery_id: int
    deleted: bool
    replaces: bool
    state: str | None
    place: str | None = None


class AddedNumber(NamedTuple):
    """A number to add to a state."""

    handler: str
    source: str
    resource: str
    label: str
    value: Any
    delivery_id: int


class NewFailure(NamedTuple):
    """A failed attempt to record."""

    delivery_id: int
    attempt: int
    handler: str
    error: str
    fingerprint: str


class Postponed(NamedTuple):
    """A delivery to try again, in so many seconds."""

    delivery_id: int
    attempts: int
    seconds: float
    error: str


class GivenBack(NamedTuple):
    """A delivery that is due again at once; `refund` attempts are taken off."""

    delivery_id: int
    attempts: int
    refund: int
    error: str | None


class Parked(NamedTuple):
    """A delivery that is given back because something is paused; looked at again in so many seconds."""

    delivery_id: int
    attempts: int
    refund: int
    error: str | None
    seconds: float


class Buried(NamedTuple):
    """A delivery that becomes a dead letter."""

    delivery_id: int
    attempts: int
    reason: str
    error: str
    fingerprint: str


class Watermark(NamedTuple):
    """The highest applied version of a resource, and the delivery that set it."""

    version: Version | None
    delivery_id: int | None
