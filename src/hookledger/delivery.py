"""A delivery: one event given to us, as a handler sees it; and an event, as a source reads it at receipt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar, overload

from hookledger.http import Headers
from hookledger.version import Version

Value = TypeVar("Value")


class Lazy(Generic[Value]):
    """A value that is worked out when first asked for. functools.cached_property of Python 3.11 takes a lock that all
    instances share."""

    def __init__(self, work_out: Callable[[Any], Value]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Lazy[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> Lazy[Value] | Value:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._work_out(instance)
        return value


@dataclass(frozen=True, slots=True)
class Event:
    """What a source reads from a verified request; a request that carries many gives a list of them.

    Args:
        event_id: what stays the same when the sender tries again; None where the sender gives none (the
            receiver then keys the event by the digest of its bytes).
        event_type: the sender's name for the kind of event.
        resource: what the event is about; None where it is about nothing that has a state.
        version: what orders the snapshots of that resource; anything that `read_version` takes.
        unreadable: why the event cannot be handled; it is kept as a dead letter with this reason.
        content: the bytes of this event alone, where one request carries many; None means the whole body.
    """

    event_id: str | None
    event_type: str
    resource: str | None = None
    version: Any = None
    unreadable: str | None = None
    content: bytes | None = None


@dataclass(frozen=True, init=False)
class Delivery:
    """One event, unique by (source, event_id), with the exact request that brought it.

    Args:
        id: the ledger's number; later arrivals have higher numbers.
        source: the name of the configured sender.
        event_id: the sender's id of the event.
        event_type: the sender's name for its kind.
        resource: what it is about, as the source reads it; a handler's `resource=` may say otherwise.
        version: what orders it among the snapshots of that resource, as the source reads it.
        received_at: when the request was committed, by the database's clock.
        position: which item of the request this is, from 0; requests of most senders carry one.
        attempt: 1 at the first try.
    """

    id: int
    source: str
    event_id: str
    event_type: str
    resource: str | None
    version: Version | None
    received_at: datetime
    position: int
    attempt: int
    body: bytes = field(repr=False)
    headers_json: str = field(repr=False)
    read_document: Callable[[Delivery], Any] = field(repr=False, compare=False)
    is_deleted: Callable[[Delivery], bool] = field(repr=False, compare=False)

    def __init__(
        self,
        id: int,
        source: str,
        event_id: str,
        event_type: str,
        resource: str | None,
        version: Version | None,
        received_at: datetime,
        position: int,
        attempt: int,
        body: bytes,
        headers_json: str,
        read_document: Callable[[Delivery], Any],
        is_deleted: Callable[[Delivery], bool],
    ) -> None:
        # All at once: field by field, as a frozen dataclass does it, takes four times as long.
        self.__dict__.update(
            id=id,
            source=source,
            event_id=event_id,
            event_type=event_type,
            resource=resource,
            version=version,
            received_at=received_at,
            position=position,
            attempt=attempt,
            body=body,
            headers_json=headers_json,
            read_document=read_document,
            is_deleted=is_deleted,
        )

    @Lazy
    def headers(self) -> Headers:
        """The request's headers in order, with repeats. They hold the sender's signature and tokens."""
        return Headers.from_json(self.headers_json)

    @Lazy
    def data(self) -> Any:
        """The event's document: the parsed JSON or form body, or this delivery's item of a batch.

        Raises:
            UnreadableBody: if the bytes are not such a document.
        """
        return self.read_document(self)

    @Lazy
    def deleted(self) -> bool:
        """Whether the event says that the resource is gone."""
        return self.is_deleted(self)

    @property
    def idempotency_key(self) -> str:
        """The same at every attempt of this event: give it to outside services, which see at-least-once."""
        return f"{self.source}:{self.event_id}"
