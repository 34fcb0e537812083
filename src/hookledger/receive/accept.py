"""From a request to what is to be recorded: verify, then read. Pure, but for the clock that is passed in."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from hookledger import storable
from hookledger.delivery import Event
from hookledger.errors import Refused, UncomparableVersion, UnreadableBody
from hookledger.http import Request, Response
from hookledger.ledger.arrays import version_text
from hookledger.ledger.rows import NewEvent
from hookledger.sources.accounts import keyed
from hookledger.sources.content_coding import as_read, as_signed
from hookledger.sources.source import Source
from hookledger.version import read_version

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A verified request with the events to record; `request` of each event is to be set when it is recorded."""

    source: Source
    headers: str
    body: bytes
    events: tuple[NewEvent, ...]


class Genuine(NamedTuple):
    """A request that has verified: as it came, and with the body that is signed."""

    source: Source
    request: Request
    signed: Request
    account: str | None


class Readable(NamedTuple):
    """A verified request with the events that it was read to carry."""

    genuine: Genuine
    events: Iterable[Event]
    body: bytes


def accept(source: Source, request: Request, now: float, largest: int) -> Accepted | Response:
    """Verify a request and read its events: `verify`, `read` and `to_record` one after the other.

    Args:
        source: the sender it claims to be from.
        request: with the exact bytes.
        now: Unix time in seconds, for timestamps that the sender signed.
        largest: bytes that a compressed body may have once inflated.

    Returns:
        What is to be recorded, or the answer to a handshake, which carries no event.

    Raises:
        Refused: if the request does not verify, or cannot be inflated.
        Exception: whatever a verifier raises that breaks; it has then not verified.
    """
    readable = read(verify(source, request, now, largest), largest)
    return readable if isinstance(readable, Response) else to_record(readable)


def verify(source: Source, request: Request, now: float, largest: int) -> Genuine:
    """The first stage: nothing is read of a request before it has verified. Arguments and errors as of `accept`."""
    signed = as_signed(source.content_encoding, request, largest)
    verified = source.verifier.verify(signed, now)
    return Genuine(source, request, signed, None if verified is None else verified.account)


def read(genuine: Genuine, largest: int) -> Readable | Response:
    """The second stage: the events of a verified request, or the answer to a handshake."""
    source, _, signed, _ = genuine
    try:
        readable = as_read(source.content_encoding, signed, largest)
        answer = source.handshake(readable)
        if answer is not None:
            return answer
        # Compressed anew, the same event comes in other bytes: what it is told apart by is what they say.
        return Readable(genuine, source.read(readable), readable.body)
    except (Refused, MemoryError):
        raise
    except Exception as error:
        return _kept(genuine, error)


def to_record(readable: Readable) -> Accepted:
    """The third stage: what the ledger is given."""
    (source, request, _, account), events, body = readable
    try:
        recorded = _to_record(source, account, events, body)
    except (Refused, MemoryError):
        raise
    except Exception as error:
        kept = _kept(readable.genuine, error)
        recorded = _to_record(source, account, kept.events, kept.body)
    return Accepted(source, request.headers.to_json(), request.body, recorded)


def _kept(genuine: Genuine, error: Exception) -> Readable:
    """A request that cannot be read. The sender cannot mend it by sending it again: it becomes a dead letter."""
    if isinstance(error, UnreadableBody):
        reason = str(error)
    else:
        # A source of the user's own that trips over what a sender sent.
        logger.exception("reading a request to %s failed; it is kept as a dead letter", genuine.source.name)
        reason = f"reading the request failed with {type(error).__name__}: {str(error)[:200]}"
    return Readable(genuine, [Event(None, "", unreadable=reason)], genuine.request.body)


def _to_record(source: Source, account: str | None, events: Iterable[Event], body: bytes) -> tuple[NewEvent, ...]:
    whole = hashlib.sha256(body).digest()
    seen: Counter[bytes] = Counter()
    return tuple([_one(source, account, event, position, whole, seen) for position, event in enumerate(events)])


def _one(
    source: Source, account: str | None, event: Event, position: int, whole: bytes, seen: Counter[bytes]
) -> NewEvent:
    digest = whole if event.content is None else hashlib.sha256(event.content).digest()
    event_id = storable.identifier(event.event_id)
    if event_id is None:
        # Without an id from the sender, or with a blank one, the bytes are the key: a repeated request is the
        # same event, and equal items of one request are different ones. An item is not the request that is
        # nothing but its bytes, which may well be one that cannot be read.
        seen[digest] += 1
        times = seen[digest]
        named = f"sha256:{digest.hex()}" if event.content is None else f"sha256:{digest.hex()}/item"
        event_id = named if times == 1 else f"{named}/{times}"
    resource = storable.identifier(event.resource)
    try:
        version = version_text(read_version(event.version))
    except UncomparableVersion:
        # A handler may have a version= of its own; if not, running it fails and says why.
        version = None
    return NewEvent(
        request=1,
        source=source.name,
        event_id=storable.key(keyed(account, event_id)),
        event_type=storable.label(event.event_type),
        resource=None if resource is None else storable.key(keyed(account, resource)),
        version=version,
        position=position,
        digest=digest,
        unreadable=None if event.unreadable is None else storable.message(event.unreadable),
    )
