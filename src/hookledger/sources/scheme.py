"""Signature schemes as data; `SchemeVerifier` executes them (D3).

A `Scheme` says where the signatures are, what bytes are signed, with what, and how old a request may be. It covers
an HMAC over the body (GitHub), over a timestamp and the body (Stripe, Slack), Standard Webhooks, an HMAC over the
public URL (Square), public keys (SendGrid, Discord), plain tokens, and signatures in the body (Mailgun).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from hookledger.errors import SetupError
from hookledger.http import Request
from hookledger.sources.checks import ALGORITHMS, DIGESTS, ENCODINGS, PUBLIC_KEYS, TOKEN, Algorithm, Encoding, check
from hookledger.sources.places import BodyFormat, Parcel, Place, Places
from hookledger.sources.secrets import STANDARD_PREFIX, KeyEncoding
from hookledger.sources.template import Part, Template, parts_of, read_template
from hookledger.sources.timestamps import DEFAULT_TOLERANCE, UNITS, TimestampUnit


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a provider signs.

    Args:
        places: the spellings, in order; the first whose signature is there is the one that counts.
        algorithm: an HMAC, a plain digest of bytes that hold the secret, a public key's algorithm, or `token`: the
            secret itself is sent.
        encoding: how the signature of an HMAC is written: hex in either case, base64, or base64url without padding. A
            token is text, or base64 as in HTTP Basic; public keys take no base64url.
        prefixes: what stands before an accepted signature, e.g. `sha256=`; anything else is skipped.
        separator: what stands between the items of the signature's header; None if it holds one value only.
        signed: the bytes that are signed, put together from {body}, {timestamp}, {id}, {method}, {url} (the public
            URL of the source), {secret}, {body:path}, {query:name}, {header:Name} and fixed text.
        timestamp_item: the prefix of the item of the signature's header that holds the timestamp, e.g. `t=`.
        timestamp_unit: how the timestamp is written.
        tolerance_past, tolerance_future: how far the timestamp may be off the receiver's clock, in seconds; None
            where the provider sets no limit.
        key_encoding: how the key is written in the secret.
        key_prefix: what stands before it there, e.g. `whpk_`.
        body_format: how the body is parsed for a signature that is in it.
        begins: how every body begins, white space aside; for a provider that has us sign, with the same secret, what
            anybody may ask for. A body that begins otherwise is refused, whoever signed it.
        covers_body: False for a provider whose signature leaves the body out. Whoever sees one request can then
            forge others, so say it in the provider's `cautions`.

    Raises:
        SetupError: for a scheme that could verify nothing, or that would not check what it seems to check.
    """

    places: tuple[Places, ...]
    algorithm: Algorithm = "hmac-sha256"
    encoding: Encoding = "hex"
    prefixes: tuple[str, ...] = ("",)
    separator: str | None = ","
    signed: str = "{body}"
    timestamp_item: str | None = None
    timestamp_unit: TimestampUnit = "seconds"
    tolerance_past: float | None = DEFAULT_TOLERANCE
    tolerance_future: float | None = DEFAULT_TOLERANCE
    key_encoding: KeyEncoding = "utf-8"
    key_prefix: str = ""
    body_format: BodyFormat = "json"
    begins: bytes = b""
    covers_body: bool = True
    template: Template = field(init=False, repr=False)

    def __post_init__(self) -> None:
        one_of("algorithm", self.algorithm, ALGORITHMS)
        one_of("encoding", self.encoding, ENCODINGS)
        if self.encoding == "base64url" and self.algorithm in (TOKEN, *PUBLIC_KEYS):
            raise SetupError(f"encoding='base64url' is for HMACs: {self.algorithm} takes hex or base64")
        one_of("timestamp_unit", self.timestamp_unit, UNITS)
        object.__setattr__(self, "template", read_template(self.signed))
        for tolerance in (self.tolerance_past, self.tolerance_future):
            if tolerance is not None:
                require_tolerance(tolerance)
        if not isinstance(self.begins, bytes):
            raise SetupError(f"begins={self.begins!r} must be the bytes that every body begins with, such as b'{{'")
        if not self.places:
            raise SetupError("a signature scheme needs the name of the header that holds the signature")
        self._check_items()
        self._check_template()

    def _check_items(self) -> None:
        for prefix in self.prefixes:
            if not isinstance(prefix, str) or (self.separator and self.separator in prefix):
                raise SetupError(f"prefix={prefix!r} must be a text without the separator {self.separator!r}")
        if not self.prefixes or self.separator == "":
            raise SetupError("a signature scheme needs a prefix (which may be empty) and a separator or None")
        if self.timestamp_item == "":
            raise SetupError('timestamp_item must say how the timestamp begins in the header, e.g. "t="')
        if self.timestamp_item is not None and any(each.timestamp for each in self.places):
            raise SetupError("the timestamp comes from timestamp_header or from timestamp_item, not from both")

    def _check_template(self) -> None:
        parts, token = parts_of(self.template), self.algorithm == TOKEN
        if (Part.SECRET in parts) != (self.algorithm in DIGESTS):
            raise SetupError(f"signed={self.signed!r}: {{secret}} belongs to a plain digest, and to nothing else")
        if Part.BODY not in parts and self.covers_body:
            raise SetupError(
                f"signed={self.signed!r} lacks {{body}}: a signature that leaves the body out proves nothing"
            )
        for each in self.places:
            in_body = each.timestamp_at is not None and bool(each.timestamp_at.path)
            covered = Part.TIMESTAMP in parts or (in_body and Part.BODY in parts and not token)
            stamped = each.timestamp is not None or self.timestamp_item is not None
            if Part.TIMESTAMP in parts and not stamped:
                raise SetupError("{timestamp} is signed: say where it comes from with timestamp_header=...")
            if stamped and (not covered or token):
                raise SetupError("a timestamp that is not signed proves nothing: put {timestamp} into signed=...")
            if Part.ID in parts and not each.identifier:
                raise SetupError("{id} is signed: say where it comes from with id_header=...")

    def spelling(self, parcel: Parcel) -> Places | None:
        """The spelling that a request uses, or None if it bears no signature."""
        for places in self.places:
            if places.at.holds(parcel):
                return places
        return None

    def identifier(self, request: Request) -> str | None:
        """The id that is covered by the signature of a request."""
        parcel = Parcel(request, self.body_format)
        places = self.spelling(parcel)
        if places is None or places.identifier_at is None:
            return None
        if places.identifier_at.header is not None:
            return request.headers.get(places.identifier_at.header)
        found = places.identifier_at.first(parcel)
        return None if found is None else found.decode("utf-8", "surrogateescape")

    def could_be(self, body: bytes) -> bool:
        """Whether a body begins as all of the provider's do."""
        return body.lstrip().startswith(self.begins)

    def require_key(self, key: bytes) -> None:
        """Raise SecretError, with the end of a sentence, for a key that cannot be used with the algorithm."""
        if self.algorithm in PUBLIC_KEYS:
            check(key, self.algorithm, self.encoding)

    @property
    def timestamped(self) -> bool:
        """Whether requests carry a time that is signed."""
        return self.timestamp_item is not None or self.places[0].timestamp is not None

    @property
    def signs_url(self) -> bool:
        """Whether the public URL of the source is signed."""
        return Part.URL in parts_of(self.template)

    @property
    def secret_prefix(self) -> str:
        """How the secrets of this scheme begin."""
        return STANDARD_PREFIX if self.key_encoding == "whsec" else self.key_prefix

    @property
    def form(self) -> str:
        """What a signature looks like, for messages."""
        shown = "token" if self.algorithm == TOKEN else self.encoding
        return " or ".join(f"{prefix}<{shown}>" for prefix in self.prefixes)


def shared_token(place: str, *, prefix: str = "", encoding: Encoding = "hex") -> Scheme:
    """A scheme in which the secret itself is sent, in a header, `query:name` or `body:path`."""
    return Scheme((Places(place),), TOKEN, encoding, (prefix,), None)


def bearer() -> Scheme:
    """`Authorization: Bearer <secret>`."""
    return shared_token("Authorization", prefix="Bearer ")


def basic() -> Scheme:
    """HTTP Basic; the secret is `user:password`. https://www.rfc-editor.org/rfc/rfc7617"""
    return shared_token("Authorization", prefix="Basic ", encoding="base64")


def require_tolerance(tolerance: object) -> None:
    """Raise SetupError for what is no tolerance in seconds: 0 or None would switch the check off."""
    number = isinstance(tolerance, int | float) and not isinstance(tolerance, bool)
    if not number or not math.isfinite(tolerance) or tolerance <= 0:  # type: ignore[arg-type, operator]
        raise SetupError(f"tolerance={tolerance!r} must be a number of seconds above 0")


def one_of(option: str, value: object, known: Sequence[str]) -> None:
    """Raise SetupError if an option has none of the known values."""
    if value not in known:
        raise SetupError(f"{option}={value!r} is not known: use one of {', '.join(known)}")


__all__ = ["Place", "Places", "Scheme", "basic", "bearer", "one_of", "require_tolerance", "shared_token"]
