"""Signature schemes as data; `SchemeVerifier` executes them (D3).

A `Scheme` says where the signatures are, what bytes are signed, and how old a request may be. It covers an HMAC
over the body (GitHub), over a timestamp and the body (Stripe, Slack), Standard Webhooks, and plain tokens.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hookledger.errors import SetupError
from hookledger.http import Headers, Request
from hookledger.sources._old.secrets import KeyEncoding

ALGORITHMS = ("sha256", "sha1", "sha384", "sha512")
TOKEN = "token"  # noqa: S105
DEFAULT_TOLERANCE = 300.0  # seconds
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

Encoding = Literal["hex", "base64"]
TimestampUnit = Literal["seconds", "milliseconds", "iso8601"]


class Part(enum.Enum):
    """What the bytes that are signed are put together from, besides fixed bytes."""

    BODY = "body"
    TIMESTAMP = "timestamp"
    ID = "id"


Template = tuple[bytes | Part, ...]


def read_template(text: str) -> Template:
    """The parts of a template such as `v0:{timestamp}:{body}`.

    Raises:
        SetupError: for an unknown field, or if the body is not signed.
    """
    if not isinstance(text, str):
        raise SetupError(f"signed={text!r} must be a text such as '{{timestamp}}.{{body}}'")
    parts: list[bytes | Part] = []
    for piece in re.split(r"(\{[^{}]*\})", text):
        if piece.startswith("{") and piece.endswith("}"):
            try:
                parts.append(Part(piece[1:-1]))
            except ValueError:
                raise SetupError(
                    f"signed={text!r} has {piece}: only {{body}}, {{timestamp}} and {{id}} are known"
                ) from None
        elif piece:
            parts.append(piece.encode())
    if Part.BODY not in parts:
        raise SetupError(f"signed={text!r} lacks {{body}}: a signature that leaves the body out proves nothing")
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """The headers of one spelling of a scheme, e.g. `webhook-*` or `svix-*`.

    Args:
        signature: holds the signatures.
        timestamp: holds the timestamp that is signed.
        identifier: holds the id that is signed.

    Raises:
        SetupError: for a text that cannot name a header.
    """

    signature: str
    timestamp: str | None = None
    identifier: str | None = None

    def __post_init__(self) -> None:
        optional = [name for name in (self.timestamp, self.identifier) if name is not None]
        for name in (self.signature, *optional):
            if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
                raise SetupError(f"{name!r} is not the name of a header")


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a provider signs.

    Args:
        headers: the spellings, in order; the first whose signature header is there is the one that counts.
        algorithm: the hash of the HMAC, or `token`: the header holds the secret itself.
        encoding: how the signature is written; hex in either case.
        prefixes: what stands before an accepted signature, e.g. `sha256=`; anything else is skipped.
        separator: what stands between the items of the signature header; None if it holds one value only.
        template: the bytes that are signed.
        timestamp_item: the prefix of the item of the signature header that holds the timestamp, e.g. `t=`.
        timestamp_unit: how the timestamp is written.
        tolerance_past, tolerance_future: how far the timestamp may be off the receiver's clock, in seconds.
        key_encoding: how the key is written in the secret.

    Raises:
        SetupError: for a scheme that could verify nothing, or that would not check what it seems to check.
    """

    headers: tuple[HeaderNames, ...]
    algorithm: str = "sha256"
    encoding: Encoding = "hex"
    prefixes: tuple[str, ...] = ("",)
    separator: str | None = ","
    template: Template = (Part.BODY,)
    timestamp_item: str | None = None
    timestamp_unit: TimestampUnit = "seconds"
    tolerance_past: float = DEFAULT_TOLERANCE
    tolerance_future: float = DEFAULT_TOLERANCE
    key_encoding: KeyEncoding = "utf-8"

    def __post_init__(self) -> None:
        one_of("algorithm", self.algorithm, (*ALGORITHMS, TOKEN))
        one_of("encoding", self.encoding, ("hex", "base64"))
        one_of("timestamp_unit", self.timestamp_unit, ("seconds", "milliseconds", "iso8601"))
        for tolerance in (self.tolerance_past, self.tolerance_future):
            number = isinstance(tolerance, int | float) and not isinstance(tolerance, bool)
            if not number or not math.isfinite(tolerance) or tolerance <= 0:
                raise SetupError(f"tolerance={tolerance!r} must be a number of seconds above 0")
        if not self.headers:
            raise SetupError("a signature scheme needs the name of the header that holds the signature")
        for prefix in self.prefixes:
            if not isinstance(prefix, str) or (self.separator and self.separator in prefix):
                raise SetupError(f"prefix={prefix!r} must be a text without the separator {self.separator!r}")
        if not self.prefixes or self.separator == "":
            raise SetupError("a signature scheme needs a prefix (which may be empty) and a separator or None")
        if self.timestamp_item == "":
            raise SetupError('timestamp_item must say how the timestamp begins in the header, e.g. "t="')
        in_header = all(names.timestamp for names in self.headers)
        if self.timestamp_item is not None and any(names.timestamp for names in self.headers):
            raise SetupError("the timestamp comes from timestamp_header or from timestamp_item, not from both")
        if Part.TIMESTAMP in self.template and not in_header and self.timestamp_item is None:
            raise SetupError("{timestamp} is signed: say where it comes from with timestamp_header=...")
        if Part.TIMESTAMP not in self.template and (in_header or self.timestamp_item is not None):
            raise SetupError("a timestamp that is not signed proves nothing: put {timestamp} into signed=...")
        if Part.ID in self.template and not all(names.identifier for names in self.headers):
            raise SetupError("{id} is signed: say where it comes from with id_header=...")

    def names(self, headers: Headers) -> HeaderNames | None:
        """The spelling that a request uses, or None if it bears no signature."""
        for names in self.headers:
            if names.signature in headers:
                return names
        return None

    def identifier(self, request: Request) -> str | None:
        """The id that is covered by the signature of a request."""
        names = self.names(request.headers)
        return request.headers.get(names.identifier) if names and names.identifier else None

    @property
    def form(self) -> str:
        """What a signature looks like, for messages."""
        shown = "token" if self.algorithm == TOKEN else self.encoding
        return " or ".join(f"{prefix}<{shown}>" for prefix in self.prefixes)


def one_of(option: str, value: object, known: Sequence[str]) -> None:
    """Raise SetupError if an option has none of the known values."""
    if value not in known:
        raise SetupError(f"{option}={value!r} is not known: use one of {', '.join(known)}")
