"""The one verifier: executes any signature scheme with the keys of a source (D3)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime

from hookledger.errors import NotVerified, SetupError, UncomparableVersion
from hookledger.http import Headers, Request
from hookledger.sources._old.scheme import TOKEN, Part, Scheme, TimestampUnit
from hookledger.version import read_version

MOST_TIMESTAMPS = 8  # signed timestamps of one request; each costs an HMAC over the whole body
LONGEST_TIMESTAMP = 20  # digits
OPTIONAL_SPACE = b" \t"


def _wire(text: str) -> bytes:
    """The bytes of a header value as they came: adapters decode them as Latin-1."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


class SchemeVerifier:
    """Executes a scheme with the keys of one source.

    Args:
        scheme: how the provider signs.
        keys: one or more, as `read_secrets` gives them; any of them may have signed.
    """

    __slots__ = ("_keys", "_prefixes", "_separator", "_timestamp_item", "scheme")

    def __init__(self, scheme: Scheme, keys: Sequence[bytes]) -> None:
        if not keys or not all(keys):
            raise SetupError("a verifier needs at least one key, and none that is empty")
        self.scheme = scheme
        self._keys = tuple(keys)
        self._prefixes = tuple([prefix.encode() for prefix in scheme.prefixes])
        self._separator = scheme.separator.encode() if scheme.separator else None
        self._timestamp_item = scheme.timestamp_item.encode() if scheme.timestamp_item else None

    def verify(self, request: Request, now: float) -> None:
        """Return if one of the keys made one of the signatures, and the timestamp is within the tolerance.

        Args:
            request: with the exact bytes.
            now: Unix time in seconds.

        Raises:
            NotVerified: with the reason for the log, which holds neither a secret nor the right signature.
        """
        scheme, headers = self.scheme, request.headers
        names = scheme.names(headers)
        if names is None:
            spellings = " or ".join(each.signature for each in scheme.headers)
            raise NotVerified(f"the header {spellings} is missing")
        timestamp = self._signed_header(headers, names.timestamp)
        identifier = self._signed_header(headers, names.identifier)
        offered = self._offered(headers.all(names.signature), timestamp, names.signature)
        for signed_at, signatures in offered.items():
            message = self._message(request.body, signed_at, identifier)
            for key in self._keys:
                expected = self._expected(key, message)
                for signature in signatures:
                    if hmac.compare_digest(expected, signature):
                        if signed_at is not None:
                            self._check_age(signed_at, now)
                        return
        raise NotVerified(
            f"no signature in {names.signature} matches: the secret is not the sender's, or the bytes were changed"
        )

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """Headers that make the body verify, signed with the first key.

        Args:
            body: the exact bytes to be sent.
            now: Unix time in seconds.
            identifier: for schemes that sign an id; without it one is made from the body, so that the same
                body sent twice is one event sent again.
        """
        scheme, names = self.scheme, self.scheme.headers[0]
        timestamp = None
        if Part.TIMESTAMP in scheme.template:
            timestamp = _write_timestamp(now, scheme.timestamp_unit)
        if identifier is None:
            identifier = f"msg_{hashlib.sha256(body).hexdigest()[:32]}"
        if scheme.algorithm == TOKEN:
            signature = self._keys[0]
        else:
            message = self._message(body, None if timestamp is None else timestamp.encode(), _wire(identifier))
            signature = self._expected(self._keys[0], message)
        value = scheme.prefixes[0] + signature.decode("latin-1")
        pairs: list[tuple[str, str]] = []
        if names.identifier:
            pairs.append((names.identifier, identifier))
        if timestamp is not None and names.timestamp:
            pairs.append((names.timestamp, timestamp))
        if timestamp is not None and scheme.timestamp_item:
            value = f"{scheme.timestamp_item}{timestamp}{scheme.separator or ''}{value}"
        pairs.append((names.signature, value))
        return Headers(pairs)

    def _signed_header(self, headers: Headers, name: str | None) -> bytes | None:
        if name is None:
            return None
        value = headers.get(name)
        if value is None:
            raise NotVerified(f"the header {name} is missing")
        return _wire(value)

    def _offered(self, values: list[str], timestamp: bytes | None, header: str) -> dict[bytes | None, list[bytes]]:
        """The signatures of the request, by the timestamp that each claims to cover."""
        offered: dict[bytes | None, list[bytes]] = {}
        for value in values:
            signed_at, signatures = self._items(_wire(value))
            if self._timestamp_item is None:
                signed_at = timestamp
            elif signed_at is None:
                continue
            if signatures:
                offered.setdefault(signed_at, []).extend(signatures)
        if not offered:
            needed = f"{self.scheme.timestamp_item}<timestamp> with " if self._timestamp_item else ""
            raise NotVerified(f"the header {header} is malformed: it does not hold {needed}{self.scheme.form}")
        if len(offered) > MOST_TIMESTAMPS:
            raise NotVerified(f"the header {header} comes with more than {MOST_TIMESTAMPS} timestamps")
        return offered

    def _items(self, value: bytes) -> tuple[bytes | None, list[bytes]]:
        """The timestamp and the signatures in one value of the signature header; unknown items are skipped."""
        timestamp: bytes | None = None
        signatures: list[bytes] = []
        for piece in value.split(self._separator) if self._separator else (value,):
            item = piece.strip(OPTIONAL_SPACE)
            if self._timestamp_item and item.startswith(self._timestamp_item):
                if timestamp is None:
                    timestamp = item[len(self._timestamp_item) :]
                continue
            for prefix in self._prefixes:
                if item.startswith(prefix) and len(item) > len(prefix):
                    signatures.append(self._comparable(item[len(prefix) :]))
                    break
        return timestamp, signatures

    def _comparable(self, signature: bytes) -> bytes:
        if self.scheme.algorithm == TOKEN:
            # Digests have equal lengths, so that the comparison does not tell the length of the secret.
            return hashlib.sha256(signature).digest()
        return signature.lower() if self.scheme.encoding == "hex" else signature

    def _message(self, body: bytes, timestamp: bytes | None, identifier: bytes | None) -> bytes:
        pieces: list[bytes] = []
        for part in self.scheme.template:
            if part is Part.BODY:
                pieces.append(body)
            elif part is Part.TIMESTAMP:
                pieces.append(timestamp or b"")
            elif part is Part.ID:
                pieces.append(identifier or b"")
            else:
                pieces.append(part)
        # A body alone is not copied.
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _expected(self, key: bytes, message: bytes) -> bytes:
        if self.scheme.algorithm == TOKEN:
            return hashlib.sha256(key).digest()
        digest = hmac.digest(key, message, self.scheme.algorithm)
        return digest.hex().encode() if self.scheme.encoding == "hex" else base64.b64encode(digest)

    def _check_age(self, timestamp: bytes, now: float) -> None:
        scheme = self.scheme
        seconds = _read_timestamp(timestamp, scheme.timestamp_unit)
        if seconds is None:
            shown = timestamp[:40].decode("latin-1")
            raise NotVerified(f"the timestamp {shown!r} is not a time in {scheme.timestamp_unit}")
        age = now - seconds
        if age > scheme.tolerance_past:
            raise NotVerified(f"the timestamp is {age:.0f} seconds old, {scheme.tolerance_past:g} are allowed")
        if -age > scheme.tolerance_future:
            raise NotVerified(
                f"the timestamp is {-age:.0f} seconds in the future, {scheme.tolerance_future:g} are allowed"
            )


def _read_timestamp(timestamp: bytes, unit: TimestampUnit) -> float | None:
    """Unix time in seconds, or None if the bytes are no such timestamp."""
    if unit == "iso8601":
        try:
            version = read_version(timestamp.decode("ascii"))
        except (UncomparableVersion, UnicodeDecodeError):
            return None
        return None if version is None else float(version[0])
    # bytes.isdigit knows ASCII digits only; whole numbers only, so that no part of the message can be
    # taken for a fraction of the timestamp.
    if not timestamp.isdigit() or len(timestamp) > LONGEST_TIMESTAMP:
        return None
    return int(timestamp) / (1000 if unit == "milliseconds" else 1)


def _write_timestamp(now: float, unit: TimestampUnit) -> str:
    if unit == "iso8601":
        return datetime.fromtimestamp(now, UTC).isoformat()
    return str(int(now * 1000) if unit == "milliseconds" else int(now))
