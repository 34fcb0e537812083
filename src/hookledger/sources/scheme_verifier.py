"""The one verifier: executes any signature scheme with the keys of a source (D3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hookledger.errors import Cause, NotVerified, SetupError
from hookledger.http import Headers, Request
from hookledger.sources.checks import DIGESTS, TOKEN, check, comparable
from hookledger.sources.places import Parcel, Place, missing
from hookledger.sources.scheme import Scheme
from hookledger.sources.source import Verified
from hookledger.sources.template import Part, Rest, message, parts_of
from hookledger.sources.timestamps import check_age, is_whole, read_timestamp

MOST_TIMESTAMPS = 8  # signed timestamps of one request; each costs an HMAC over the whole body
OPTIONAL_SPACE = b" \t"
NO_REST = Rest(Parcel(Request("", "", Headers(), b"")))


class SchemeVerifier:
    """Executes a scheme with the keys of one source.

    Args:
        scheme: how the provider signs.
        keys: one or more, as `read_secrets` gives them; any of them may have signed.
        url: the public URL of the source, for a scheme that signs it.
        numbers: which of the source's secrets the keys are, if some are of another scheme.

    Raises:
        SetupError: for a verifier that could verify nothing.
    """

    __slots__ = (
        "_checks",
        "_comparable",
        "_folds",
        "_item",
        "_joins",
        "_keyed",
        "_keys",
        "_late",
        "_plain",
        "_prefixes",
        "_separator",
        "_url",
        "_verified",
        "scheme",
    )

    def __init__(
        self, scheme: Scheme, keys: Sequence[bytes], *, url: str | None = None, numbers: Sequence[int] | None = None
    ) -> None:
        if not keys or not all(keys):
            raise SetupError("a verifier needs at least one key, and none that is empty")
        if url is None and scheme.signs_url:
            raise SetupError("the URL is signed: give url=..., the public URL of the source as the provider has it")
        self.scheme = scheme
        self._keys = tuple(keys)
        self._url = None if url is None else url.encode()
        self._checks = tuple([check(key, scheme.algorithm, scheme.encoding) for key in keys])
        self._keyed = scheme.algorithm in DIGESTS
        parts = parts_of(scheme.template)
        self._plain = parts <= {Part.BODY, Part.TIMESTAMP, Part.ID}
        # With nothing between them, the end of the time could be moved to the beginning of the body.
        self._joins = (Part.TIMESTAMP, Part.BODY) in pairwise(scheme.template)
        # A time inside the signed body is read once that has verified.
        self._late = Part.TIMESTAMP not in parts and scheme.timestamp_item is None
        self._comparable = comparable(scheme.algorithm, scheme.encoding)
        # The names of HTTP's authentication schemes, such as Bearer, count in either case.
        self._folds = scheme.algorithm == TOKEN
        self._prefixes = tuple([(each.lower() if self._folds else each).encode() for each in scheme.prefixes])
        self._separator = scheme.separator.encode() if scheme.separator else None
        self._item = scheme.timestamp_item.encode() if scheme.timestamp_item else None
        self._verified = tuple([Verified(number) for number in numbers or range(len(keys))])

    def verify(self, request: Request, now: float) -> Verified:
        """Return if one of the keys made one of the signatures, and the timestamp is within the tolerance.

        Args:
            request: with the exact bytes.
            now: Unix time in seconds.

        Raises:
            NotVerified: with the reason for the log, which holds neither a secret nor the right signature.
        """
        number, signed_at = self._match(request)
        if signed_at is not None:
            self._check_age(signed_at, now)
        return self._verified[number]

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys, the one that signs first."""
        return self._keys

    @property
    def url(self) -> str | None:
        """The public URL."""
        return None if self._url is None else self._url.decode()

    def key_of(self, request: Request) -> bytes:
        """The key that signed a verified request."""
        return self._keys[self._match(request)[0]]

    def with_url(self, url: str) -> SchemeVerifier:
        """The same for another public URL."""
        return SchemeVerifier(self.scheme, self._keys, url=url, numbers=[each.secret for each in self._verified])

    def _match(self, request: Request) -> tuple[int, bytes | None]:
        """Which key signed the request, and at what time if that is signed."""
        scheme = self.scheme
        if scheme.begins and not scheme.could_be(request.body):
            begins = scheme.begins.decode("latin-1")
            raise NotVerified(f"the body does not begin with {begins!r}, as all of the sender's do", Cause.NO_MATCH)
        parcel = Parcel(request, scheme.body_format)
        for places in scheme.places:
            values = places.at.values(parcel)
            if values:
                break
        else:
            raise missing([each.at for each in scheme.places])
        timestamp_at, identifier_at = places.timestamp_at, places.identifier_at
        timestamp = identifier = None
        if timestamp_at is not None and not self._late:
            timestamp = timestamp_at.first(parcel)
            if timestamp is None:
                raise missing([timestamp_at])
        if identifier_at is not None:
            identifier = identifier_at.first(parcel)
            if identifier is None:
                raise missing([identifier_at])
        rest = NO_REST if self._plain else Rest(parcel, self._url)
        for signed_at, signatures in self._offered(values, timestamp, places.at).items():
            covered: bytes | None = None
            for number, each in enumerate(self._checks):
                if covered is None or self._keyed:
                    if self._keyed:
                        rest.key = self._keys[number]
                    covered = message(scheme.template, request.body, signed_at, identifier, rest)
                if each.matches(covered, signatures):
                    if self._late and timestamp_at is not None:
                        signed_at = timestamp_at.first(parcel)
                        if signed_at is None:
                            raise missing([timestamp_at])
                    return number, signed_at
        raise NotVerified(
            f"no signature in the {places.at.in_words} matches: the secret is not the sender's, or the bytes were "
            "changed",
            Cause.NO_MATCH,
            place=places.signature,
        )

    def _offered(self, values: list[bytes], timestamp: bytes | None, place: Place) -> dict[bytes | None, list[bytes]]:
        """The signatures of the request, by the timestamp that each claims to cover."""
        offered: dict[bytes | None, list[bytes]] = {}
        for value in values:
            signed_at, signatures = self._items(value)
            if self._item is None:
                signed_at = timestamp
            elif signed_at is None:
                continue
            if signatures:
                offered.setdefault(signed_at, []).extend(signatures)
        if not offered:
            needed = f"{self.scheme.timestamp_item}<timestamp> with " if self._item else ""
            raise NotVerified(
                f"the {place.in_words} is malformed: it does not hold {needed}{self.scheme.form}",
                Cause.SIGNATURE_MALFORMED,
                place=place.written,
            )
        if len(offered) > MOST_TIMESTAMPS:
            raise NotVerified(
                f"the {place.in_words} comes with more than {MOST_TIMESTAMPS} timestamps", Cause.SIGNATURE_MALFORMED
            )
        return offered

    def _items(self, value: bytes) -> tuple[bytes | None, list[bytes]]:
        """The timestamp and the signatures in one value of the signature's place; unknown items are skipped."""
        timestamp: bytes | None = None
        signatures: list[bytes] = []
        for piece in value.split(self._separator) if self._separator else (value,):
            item = piece.strip(OPTIONAL_SPACE)
            if self._item and item.startswith(self._item):
                if timestamp is None:
                    timestamp = item[len(self._item) :]
                continue
            head = item.lower() if self._folds else item
            for prefix in self._prefixes:
                if head.startswith(prefix) and len(item) > len(prefix):
                    signature = self._comparable(item[len(prefix) :])
                    if signature is not None:
                        signatures.append(signature)
                    break
        return timestamp, signatures

    def _check_age(self, timestamp: bytes, now: float) -> None:
        scheme = self.scheme
        seconds = read_timestamp(timestamp, scheme.timestamp_unit)
        if seconds is None or (self._joins and not is_whole(timestamp, scheme.timestamp_unit)):
            shown = timestamp[:40].decode("latin-1")
            raise NotVerified(
                f"the timestamp {shown!r} is not a time in {scheme.timestamp_unit}", Cause.TIMESTAMP_MALFORMED
            )
        check_age(seconds, now, past=scheme.tolerance_past, future=scheme.tolerance_future)
