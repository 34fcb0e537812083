"""Reads the events of a verified request by the fields of its source."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from typing import Any, get_args

from hookledger.delivery import Delivery, Event
from hookledger.errors import SetupError, UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources.fields import Format, Look, ProviderField, Reader, field_reader
from hookledger.sources.items import Item, ItemPaths, Split, written
from hookledger.sources.reading import (
    Lookup,
    VersionUnit,
    event_type_of,
    in_document,
    in_form,
    is_form,
    moment,
    read_form,
    read_json,
)
from hookledger.storable import identifier

Deleted = str | Sequence[str] | Callable[[Delivery], bool]
"""Patterns of event types, or a function of the delivery."""

PAYLOAD = "payload"
NO_HEADERS = Headers()
"""The field of a form that holds the JSON, with senders that send either."""


class EventReader:
    """Reads the event of a request, or the events of a batch.

    Args:
        format: what the body is. "json-or-form" goes by the Content-Type; a form that has JSON in the field
            `payload` is read as that JSON.
        event_id, event_type, resource, version: where each is found; None where the sender gives none.
        version_unit: set if the version is a number of seconds or milliseconds since 1970.
        items: where the list of events is in a body that carries many, or a function that gives them.
        objects: refuse a body that is JSON but no object, as one that the sender does not send.

    Raises:
        SetupError: for a field that could not be read.
    """

    def __init__(
        self,
        format: Format,
        *,
        event_id: ProviderField | None,
        event_type: ProviderField | None,
        resource: ProviderField | None,
        version: ProviderField | None,
        version_unit: VersionUnit | None = None,
        items: str | tuple[str, ...] | Split | None = None,
        objects: bool = False,
    ) -> None:
        if format not in get_args(Format):
            raise SetupError(f"format={format!r} is not known: use json, form, bytes or json-or-form")
        if version_unit is not None and version_unit not in get_args(VersionUnit):
            raise SetupError(f"version_unit={version_unit!r} is not known: use seconds, milliseconds or None")
        if version_unit is not None and version is None:
            raise SetupError("version_unit is given without version: say where the version is found")
        if items is not None and format != "json":
            raise SetupError('items= needs format="json"')
        self._format = format
        self._event_id = field_reader("event_id", event_id, format)
        self._event_type = field_reader("event_type", event_type, format)
        self._resource = field_reader("resource", resource, format)
        self._version = field_reader("version", version, format)
        self._version_unit = version_unit
        self._items = None if items is None else ItemPaths(items)
        self._objects = objects

    def read(self, request: Request) -> Sequence[Event]:
        """The events; one that cannot be read bears the reason, and its id if that is in a header."""
        try:
            document, lookup = self._parse(request.body, request.headers)
            if self._items is not None:
                items = self._items.of(document)
                return [self._item(number, item, request, document) for number, item in enumerate(items)]
        except UnreadableBody as error:
            # Paths then lead nowhere, while headers can still be read.
            return (self._event(Look(request, None, None, None), [str(error)]),)
        return (self._event(Look(request, document, document, document, lookup), []),)

    def document(self, delivery: Delivery) -> Any:
        """The document of a delivery: the body, or its item of a batch.

        Raises:
            UnreadableBody: if the body is not what the source sends.
        """
        if self._items is not None:
            return self._items.document(delivery.body, delivery.position)
        headers = delivery.headers if self._format == "json-or-form" else NO_HEADERS
        return self._parse(delivery.body, headers)[0]

    def _parse(self, body: bytes, headers: Headers) -> tuple[Any, Lookup]:
        document: Any = body
        lookup: Lookup = in_document
        if self._format == "form" or (self._format == "json-or-form" and is_form(headers)):
            document, lookup = read_form(body), in_form
            if self._format == "json-or-form" and document.get(PAYLOAD):
                document, lookup = read_json(document[PAYLOAD][0].encode("utf-8", "surrogateescape")), in_document
        elif self._format != "bytes":
            document = read_json(body)
        if self._objects and self._items is None and not isinstance(document, dict):
            raise UnreadableBody("the body is JSON, but not the object that the sender sends")
        return document, lookup

    def _item(self, number: int, item: Item, request: Request, document: Any) -> Event:
        try:
            content = written(item.part, sort=True)
        except UnreadableBody as error:
            return Event(None, "", unreadable=str(error), content=f"item {number}".encode())
        faults = [] if isinstance(item.part, dict) else [f"item {number} of the body is no object"]
        return self._event(Look(request, document, item.part, item.outer, position=number), faults, content)

    def _event(self, look: Look, faults: list[str], content: bytes | None = None) -> Event:
        """An event as far as it can be read; faults that are found on the way are added to those given."""

        unreadable = bool(faults)
        version = None if unreadable else self._found(self._version, look, faults)
        if self._version_unit is not None:
            version = moment(version, self._version_unit)
        resource = None if unreadable else self._found(self._resource, look, faults)
        return Event(
            event_id=identifier(self._found(self._event_id, look, faults)),
            event_type=event_type_of(self._found(self._event_type, look, faults)),
            resource=identifier(resource),
            version=version,
            unreadable=faults[0] if faults else None,
            content=content,
        )

    @staticmethod
    def _found(reader: Reader | None, look: Look, faults: list[str]) -> Any:
        if reader is None:
            return None
        try:
            return reader(look)
        except UnreadableBody as error:
            faults.append(str(error))
            return None


def deletion(deleted: Deleted) -> Callable[[Delivery], bool]:
    """The function that tells whether a delivery says that its resource is gone.

    Raises:
        SetupError: for patterns that are no texts.
    """
    if callable(deleted):
        return deleted
    patterns = (deleted,) if isinstance(deleted, str) else deleted
    if not isinstance(patterns, Sequence) or not all(isinstance(each, str) and each for each in patterns):
        raise SetupError("deleted must be patterns of event types, or a function of the delivery")
    if not patterns:
        return lambda _: False
    pattern = re.compile("|".join(fnmatch.translate(each) for each in patterns))
    return lambda delivery: pattern.match(delivery.event_type) is not None
