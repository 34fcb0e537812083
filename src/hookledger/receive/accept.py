"""From a request to what is to be recorded: verify, then read. Pure, but for the clock that is passed in."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass

from hookledger import storable
from hookledger.delivery import Event
from hookledger.errors import UncomparableVersion, UnreadableBody
from hookledger.http import Request, Response
from hookledger.ledger.arrays import version_text
from hookledger.ledger.repository import NewEvent
from hookledger.sources.source import Source
from hookledger.version import read_version


@dataclass(frozen=True, slots=True)
class Accepted:
    """A verified request with the events to record; `request` of each event is to be set when it is recorded."""

    source: Source
    headers: str
    body: bytes
    events: tuple[NewEvent, ...]


def accept(source: Source, request: Request, now: float) -> Accepted | Response:
    """Verify a request and read its events.

    Args:
        source: the sender it claims to be from.
        request: with the exact bytes.
        now: Unix time in seconds, for timestamps that the sender signed.

    Returns:
        What is to be recorded, or the answer to a handshake, which carries no event.

    Raises:
        NotVerified: if the request does not verify.
    """
    source.verifier.verify(request, now)
    answer = source.handshake(request)
    if answer is not None:
        return answer
    try:
        events = source.read(request)
    except UnreadableBody as error:
        # The sender cannot mend it by sending it again: it is kept, as a dead letter.
        events = (Event(None, "", unreadable=str(error)),)
    seen: Counter[bytes] = Counter()
    return Accepted(
        source,
        request.headers.to_json(),
        request.body,
        tuple([_to_record(source, event, position, request.body, seen) for position, event in enumerate(events)]),
    )


def _to_record(source: Source, event: Event, position: int, body: bytes, seen: Counter[bytes]) -> NewEvent:
    digest = hashlib.sha256(body if event.content is None else event.content).digest()
    event_id = event.event_id
    if event_id is None:
        # Without an id from the sender the bytes are the key: a repeated request is the same event, and
        # equal items of one request are different ones.
        seen[digest] += 1
        times = seen[digest]
        event_id = f"sha256:{digest.hex()}" if times == 1 else f"sha256:{digest.hex()}/{times}"
    try:
        version = version_text(read_version(event.version))
    except UncomparableVersion:
        # A handler may have a version= of its own; if not, running it fails and says why.
        version = None
    return NewEvent(
        request=1,
        source=source.name,
        event_id=storable.key(event_id),
        event_type=storable.label(event.event_type),
        resource=None if event.resource is None else storable.key(event.resource),
        version=version,
        position=position,
        digest=digest,
        unreadable=None if event.unreadable is None else storable.message(event.unreadable),
    )
