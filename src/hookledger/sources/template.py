"""The bytes that are signed, as a template: `v0:{timestamp}:{body}`."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass

from hookledger.errors import SetupError
from hookledger.sources.places import Parcel, Place, wire

KNOWN = "{body}, {timestamp}, {id}, {method}, {url}, {secret}, {body:path}, {query:name} and {header:Name}"
_HUBSPOT_ESCAPES = re.compile(rb"%(3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)", re.IGNORECASE)


def _hubspot_unescaped(url: bytes) -> bytes:
    """HubSpot decodes twelve escapes of the URL before it signs, and no other.

    https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests
    """
    return _HUBSPOT_ESCAPES.sub(lambda found: bytes([int(found[1], 16)]), url)


TRANSFORMS: dict[str, Callable[[bytes], bytes]] = {
    "hubspot": _hubspot_unescaped,
    "lower": bytes.lower,
    "upper": bytes.upper,
}
"""What a part can be put through, as in `{url|hubspot}`."""


class Part(enum.Enum):
    """What the signed bytes are put together from, besides fixed bytes and places of the request."""

    BODY = "body"
    TIMESTAMP = "timestamp"
    ID = "id"
    METHOD = "method"
    URL = "url"
    SECRET = "secret"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Transformed:
    """A part that is changed before it is signed."""

    part: Part | Place
    change: Callable[[bytes], bytes]


Piece = bytes | Part | Place | Transformed
Template = tuple[Piece, ...]


def read_template(text: str) -> Template:
    """The parts of a template.

    Raises:
        SetupError: for an unknown field.
    """
    if not isinstance(text, str):
        raise SetupError(f"signed={text!r} must be a text such as '{{timestamp}}.{{body}}'")
    parts: list[Piece] = []
    for piece in re.split(r"(\{[^{}]*\})", text):
        if piece.startswith("{") and piece.endswith("}"):
            parts.append(_field(piece, text))
        elif piece:
            parts.append(piece.encode())
    return tuple(parts)


def _field(piece: str, text: str) -> Piece:
    name, bar, transform = piece[1:-1].partition("|")
    unknown = SetupError(f"signed={text!r} has {piece}: only {KNOWN} are known")
    part: Part | Place
    if name.startswith("header:"):
        part = Place(name.removeprefix("header:"))
    elif ":" in name:
        part = Place(name)
    else:
        try:
            part = Part(name)
        except ValueError:
            raise unknown from None
    if not bar:
        return part
    if transform not in TRANSFORMS:
        raise SetupError(f"signed={text!r} has {piece}: {transform!r} is none of {', '.join(TRANSFORMS)}")
    return Transformed(part, TRANSFORMS[transform])


def parts_of(template: Template) -> set[Part | Place]:
    """What a template is put together from, without fixed bytes."""
    plain = [each.part if isinstance(each, Transformed) else each for each in template]
    return {each for each in plain if not isinstance(each, bytes)}


@dataclass(slots=True)
class Rest:
    """What the rarer parts of a template stand for.

    Args:
        parcel: the request.
        url: the public URL of the source.
        key: for plain digests, which hash it along.
    """

    parcel: Parcel
    url: bytes | None = None
    key: bytes = b""


def message(template: Template, body: bytes, timestamp: bytes | None, identifier: bytes | None, rest: Rest) -> bytes:
    """The bytes that are signed.

    Args:
        template: what they are put together from.
        body, timestamp, identifier: as the request has them.
        rest: for the other parts.
    """
    pieces: list[bytes] = []
    for part in template:
        if part is Part.BODY:
            pieces.append(body)
        elif part is Part.TIMESTAMP:
            pieces.append(timestamp or b"")
        elif isinstance(part, bytes):
            pieces.append(part)
        elif part is Part.ID:
            pieces.append(identifier or b"")
        elif isinstance(part, Transformed):
            pieces.append(part.change(message((part.part,), body, timestamp, identifier, rest)))
        else:
            pieces.append(_rarer(part, rest))
    # A body alone is not copied.
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _rarer(part: Part | Place, rest: Rest) -> bytes:
    if isinstance(part, Place):
        return b"".join(part.values(rest.parcel)[:1])
    request = rest.parcel.request
    if part is Part.METHOD:
        return wire(request.method)
    if part is Part.SECRET:
        return rest.key
    return signed_url(rest.url or b"", request.query)


def signed_url(url: bytes, query: str) -> bytes:
    """The URL that a sender signs: the configured one, and behind it, if it has no query, that of the request.

    The request's host, port and path are not used: they are what a proxy made of them.
    """
    return url if b"?" in url or not query else url + b"?" + wire(query)
