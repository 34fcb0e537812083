"""Reading what a verified request carries: JSON and form bodies, and paths into them (D2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import parse_qs

from hookledger.errors import UnreadableBody
from hookledger.http import Headers
from hookledger.storable import label

MOST_FORM_FIELDS = 10_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

VersionUnit = Literal["seconds", "milliseconds"]
Path = tuple[str, ...]
Lookup = Callable[[Any, Path], Any]


def read_json(body: bytes) -> Any:
    """The document of a JSON body, as Python's json reads it: NaN and 1e400 are floats, integers are exact.

    Raises:
        UnreadableBody: with the reason.
    """
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        if not body.strip():
            raise UnreadableBody("the body is empty where JSON was expected") from None
        raise UnreadableBody(f"the body is not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise UnreadableBody(
            f"the body is not text in {error.encoding.upper()}: byte 0x{body[error.start]:02x} at {error.start}"
        ) from None
    except RecursionError:
        raise UnreadableBody("the body is JSON that is nested too deeply to be read") from None
    except ValueError:
        # The one other cause: Python's limit for the digits of an integer.
        raise UnreadableBody("the body is JSON with an integer of more digits than Python reads") from None


def read_form(body: bytes) -> dict[str, list[str]]:
    """The fields of an `application/x-www-form-urlencoded` body: every name with all its values, blank ones kept.

    Bytes that are not UTF-8 become lone surrogates, so that distinct values stay distinct.

    Raises:
        UnreadableBody: for more than 10,000 fields.
    """
    text = body.decode("utf-8", "surrogateescape")
    try:
        return parse_qs(text, keep_blank_values=True, errors="surrogateescape", max_num_fields=MOST_FORM_FIELDS)
    except ValueError:
        raise UnreadableBody(f"the body is a form of more than {MOST_FORM_FIELDS} fields") from None


def is_form(headers: Headers) -> bool:
    """Whether the request says that its body is a form."""
    kind = (headers.get("content-type") or "").partition(";")[0]
    return kind.strip().lower() == "application/x-www-form-urlencoded"


def in_document(document: Any, path: Path) -> Any:
    """The value at a path of keys and list indexes, or None if there is nothing there."""
    for step in path:
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and len(step) < 10 and step.isascii() and step.isdigit():
            index = int(step)
            document = document[index] if index < len(document) else None
        else:
            return None
    return document


def in_form(fields: Any, path: Path) -> Any:
    """The first value of the field that the path begins with; the rest of the path leads into JSON in it."""
    values = fields.get(path[0]) if isinstance(fields, dict) else None
    if not values:
        return None
    if len(path) == 1:
        return values[0]
    try:
        document = read_json(values[0].encode("utf-8", "surrogateescape"))
    except (UnreadableBody, UnicodeEncodeError):
        return None
    return in_document(document, path[1:])


def event_type_of(value: Any) -> str:
    """An event type as read from a document: a string or a number, else the empty string."""
    if isinstance(value, str):
        return label(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return label(str(value))
    return ""


def moment(value: Any, unit: VersionUnit = "seconds") -> Any:
    """A number since 1970 as a time with a zone, so that versions of it are taken for times.

    A text that is no whole number is returned as it is: it may be an ISO 8601 time. A number that no calendar
    holds becomes a text that is refused as a version, instead of a number above all that follow.
    """
    number = value
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.isdigit():
        number = int(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        return value
    try:
        return EPOCH + timedelta(**{unit: number})
    except (OverflowError, ValueError):
        return f"a number of {unit} beyond any calendar"
