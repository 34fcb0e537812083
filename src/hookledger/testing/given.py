"""The deliveries of a search, as they were given, and what the sources read of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hookledger.errors import HookledgerError, SetupError
from hookledger.http import Headers, Request, Response
from hookledger.inbox import Inbox
from hookledger.receive.accept import Accepted, Genuine, read, to_record
from hookledger.testing.signing import USUAL, as_bytes, signed

LARGEST = 64 * 1024 * 1024
"""Bytes of an inflated body."""


class Given(NamedTuple):
    """A delivery of a search.

    Args:
        number: from 0, in the order in which they were given.
        accepted: what the ledger is to record when it comes.
    """

    number: int
    accepted: Accepted

    @property
    def label(self) -> str:
        """How a person knows it."""
        first, *more = self.accepted.events
        others = f" and {len(more)} more" if more else ""
        return f"{first.source} {first.event_type} {first.event_id}{others}"


def read_given(inbox: Inbox, deliveries: Sequence[Any]) -> list[Given]:
    """Read deliveries as a receiver does after it has verified them, so that also those can be given that only the
    provider can sign.

    Args:
        inbox: with their sources.
        deliveries: each (source, event), or a Request of a source, as `signed` makes one. A list of both has no
            better type to a type checker.

    Raises:
        SetupError: for none at all, for something else than a delivery, for one that carries no event, and for two that
            are one event.
    """
    if not deliveries:
        raise SetupError("give at least one delivery; two of one resource show the most")
    given = [_one(inbox, number, delivery) for number, delivery in enumerate(deliveries)]
    keys: dict[tuple[str, str], int] = {}
    for one in given:
        for new in one.accepted.events:
            earlier = keys.setdefault((new.source, new.event_id), one.number)
            if earlier != one.number:
                raise SetupError(
                    f"deliveries {earlier + 1} and {one.number + 1} are one event, {new.source} {new.event_id}: "
                    "give it once, repeats are tried by themselves"
                )
    return given


def _one(inbox: Inbox, number: int, delivery: Any) -> Given:
    request = delivery if isinstance(delivery, Request) else _request(inbox, number, delivery)
    source = inbox.sources.get(request.source)
    if source is None:
        known = ", ".join(sorted(inbox.sources)) or "none"
        raise SetupError(f"delivery {number + 1} is of the source {request.source!r}, but the inbox has: {known}")
    try:
        readable = read(Genuine(source, request, request, None), LARGEST)
    except HookledgerError as error:
        raise SetupError(f"delivery {number + 1} cannot be read: {error}") from error
    accepted = None if isinstance(readable, Response) else to_record(readable)
    if accepted is None or not accepted.events:
        raise SetupError(f"delivery {number + 1} carries no event, so no handler would see it")
    return Given(number, accepted)


def _request(inbox: Inbox, number: int, delivery: Any) -> Request:
    match delivery:
        case (str() as name, event):
            source = inbox.sources.get(name)
            if source is None or source.sign is None:
                return Request(name, "POST", Headers(USUAL), as_bytes(event))
            return signed(inbox, name, event)
    raise SetupError(f'delivery {number + 1} must be (source, event), such as ("stripe", {{...}}), or a Request')
