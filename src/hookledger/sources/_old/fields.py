"""Where a configurable source finds the id, type, resource and version of an event: paths, headers, functions."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hookledger.delivery import Delivery, Event
from hookledger.errors import SetupError, UnreadableBody
from hookledger.http import Request
from hookledger.sources._old.reading import (
    Lookup,
    VersionUnit,
    event_type_of,
    in_document,
    in_form,
    moment,
    read_form,
    read_json,
)
from hookledger.storable import identifier

Field = str | Callable[[Request], Any]
"""A dotted path into the body ("data.items.0.id"), "header:Name", or a function of the request."""

Deleted = str | Sequence[str] | Callable[[Delivery], bool]
"""Patterns of event types, or a function of the delivery."""

Format = Literal["json", "form", "bytes"]

HEADER = "header:"

_Reader = Callable[[Request, Any], Any]


def _as_bytes(body: bytes) -> bytes:
    return body


READERS: dict[Format, Callable[[bytes], Any]] = {"json": read_json, "form": read_form, "bytes": _as_bytes}
LOOKUPS: dict[Format, Lookup] = {"json": in_document, "form": in_form}


@dataclass(frozen=True, slots=True)
class _FieldReader:
    """One field of an event, ready to be read."""

    option: str
    read: _Reader

    def __call__(self, request: Request, document: Any) -> Any:
        try:
            return self.read(request, document)
        except Exception as error:
            # A user's function that trips over what a sender sent: kept and shown, never a 500.
            raise UnreadableBody(
                f"the function {self.option}= raised {type(error).__name__}: {str(error)[:200]}"
            ) from error


def _field_reader(option: str, field: Field | None, format: Format) -> _FieldReader | None:
    if field is None:
        return None
    if callable(field):
        return _FieldReader(option, lambda request, _: field(request))
    if not isinstance(field, str) or not field.strip():
        raise SetupError(f'{option}={field!r} must be a path such as "data.id", "header:Name" or a function')
    if field.startswith(HEADER):
        name = field.removeprefix(HEADER).strip()
        if not name:
            raise SetupError(f'{option}={field!r} lacks the name of the header, as in "header:X-Event-Id"')
        return _FieldReader(option, lambda request, _: request.headers.get(name))
    lookup = LOOKUPS.get(format)
    if lookup is None:
        raise SetupError(
            f'{option}={field!r} is a path, but format="bytes" has no document: use "header:Name", a function or None'
        )
    path = tuple(field.split("."))
    if not all(path):
        raise SetupError(f"{option}={field!r} has an empty step between its dots")
    return _FieldReader(option, lambda _, document: lookup(document, path))


class EventFields:
    """Reads the one event of a request.

    Args:
        format: what the body is.
        event_id, event_type, resource, version: where each is found; None where the sender gives none.
        version_unit: set if the version is a number of seconds or milliseconds since 1970.

    Raises:
        SetupError: for a field that could not be read.
    """

    def __init__(
        self,
        format: Format,
        *,
        event_id: Field | None,
        event_type: Field | None,
        resource: Field | None,
        version: Field | None,
        version_unit: VersionUnit | None = None,
    ) -> None:
        if format not in READERS:
            raise SetupError(f"format={format!r} is not known: use json, form or bytes")
        if version_unit is not None and version_unit not in get_args(VersionUnit):
            raise SetupError(f"version_unit={version_unit!r} is not known: use seconds, milliseconds or None")
        if version_unit is not None and version is None:
            raise SetupError("version_unit is given without version: say where the version is found")
        self._read_body = READERS[format]
        self._event_id = _field_reader("event_id", event_id, format)
        self._event_type = _field_reader("event_type", event_type, format)
        self._resource = _field_reader("resource", resource, format)
        self._version = _field_reader("version", version, format)
        self._version_unit = version_unit

    def read(self, request: Request) -> tuple[Event]:
        """The event; one that cannot be read bears the reason, and its id if that is in a header."""
        unreadable: list[str] = []
        document: Any = None

        def found(reader: _FieldReader | None) -> Any:
            if reader is None:
                return None
            try:
                return reader(request, document)
            except UnreadableBody as error:
                unreadable.append(str(error))
                return None

        try:
            document = self._read_body(request.body)
        except UnreadableBody as error:
            # Paths then lead nowhere, while headers can still be read.
            event_id = identifier(found(self._event_id))
            return (Event(event_id, event_type_of(found(self._event_type)), unreadable=str(error)),)
        version = found(self._version)
        if self._version_unit is not None:
            version = moment(version, self._version_unit)
        event = Event(
            event_id=identifier(found(self._event_id)),
            event_type=event_type_of(found(self._event_type)),
            resource=identifier(found(self._resource)),
            version=version,
            unreadable=unreadable[0] if unreadable else None,
        )
        return (event,)

    def document(self, delivery: Delivery) -> Any:
        """The document of a delivery.

        Raises:
            UnreadableBody: if the body is not what was configured.
        """
        return self._read_body(delivery.body)


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
