"""Signing as a provider does: for `hookledger send`, and for tests (D3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from hookledger.errors import SetupError, UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources.checks import PUBLIC_KEYS, TOKEN, check
from hookledger.sources.places import Parcel, Places
from hookledger.sources.reading import in_document, read_json
from hookledger.sources.scheme import Scheme
from hookledger.sources.template import Rest, message
from hookledger.sources.timestamps import write_timestamp


class SchemeSigner:
    """Makes requests that verify under a scheme.

    Args:
        scheme: how the provider signs.
        key: the secret's key; with a public key, `signer` is needed.
        url: the public URL of the source, for a scheme that signs it.
        signer: gives the written signature of a message, made with the private key.

    Raises:
        SetupError: for a public key without a signer, or a signature that is in the query and is no token.
    """

    def __init__(
        self, scheme: Scheme, key: bytes, *, url: str | None = None, signer: Callable[[bytes], str] | None = None
    ) -> None:
        if signer is None and scheme.algorithm in PUBLIC_KEYS:
            raise SetupError("a public key can check signatures, and make none")
        carriers = [each for each in scheme.places if each.at.query is None]
        if not carriers and scheme.algorithm != TOKEN:
            raise SetupError("the signature is in the query, and only a token can be put there")
        in_headers = [each for each in carriers if not each.at.path]
        self.scheme = scheme
        self._places: Places = (in_headers or carriers or scheme.places)[0]
        self._signer = signer or check(key, scheme.algorithm, scheme.encoding).sign
        self._key = key
        self._url = None if url is None else url.encode()

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """Headers that make the body verify.

        Args:
            body: the exact bytes to be sent; from `sign_body` where the scheme has something in the body.
            now: Unix time in seconds.
            identifier: for schemes that sign an id; without it one is made from the body, so that the same
                body sent twice is one event sent again.

        Raises:
            UnreadableBody: for a body that does not begin as all of the provider's do.
        """
        scheme, places = self.scheme, self._places
        if not scheme.could_be(body):
            raise UnreadableBody(f"the body does not begin with {scheme.begins.decode('latin-1')!r}")
        timestamp = self._timestamp(now)
        pairs: list[tuple[str, str]] = []
        if places.identifier_at is not None and places.identifier_at.header:
            made = f"msg_{hashlib.sha256(body).hexdigest()[:32]}" if identifier is None else identifier
            pairs.append((places.identifier_at.header, made))
        if timestamp is not None and places.timestamp_at is not None and places.timestamp_at.header:
            pairs.append((places.timestamp_at.header, timestamp))
        if places.at.path or places.at.query:
            return Headers(pairs)
        value = scheme.prefixes[0] + self._signature(Request("", "POST", Headers(pairs), body), timestamp)
        if timestamp is not None and scheme.timestamp_item:
            value = f"{scheme.timestamp_item}{timestamp}{scheme.separator or ''}{value}"
        pairs.append((places.at.header or f"{places.at.written[:-1]}1", value))
        return Headers(pairs)

    @property
    def query(self) -> str:
        """What stands in the query of the URL: the token of a scheme that has it there."""
        if self._places.at.query is None:
            return ""
        return urlencode({self._places.at.query: self.scheme.prefixes[0] + self._signer(b"")}, encoding="latin-1")

    @property
    def signs_body(self) -> bool:
        """Whether a body must go through `sign_body` before it is signed and sent."""
        places = self._places
        return any(each is not None and each.path for each in (places.at, places.timestamp_at, places.identifier_at))

    def sign_body(self, body: bytes, now: float) -> bytes:
        """The body with what the scheme has in it: the time, an id where it lacks one, and the signature.

        Raises:
            UnreadableBody: for a body that is no JSON object.
        """
        document = read_json(body)
        if self.scheme.body_format != "json" or not isinstance(document, dict):
            raise UnreadableBody("only a JSON object can be signed in its body")
        places, timestamp = self._places, self._timestamp(now)
        if places.identifier_at is not None and not in_document(document, places.identifier_at.path):
            _put(document, places.identifier_at.path, hashlib.sha256(body).hexdigest())
        if timestamp is not None and places.timestamp_at is not None and places.timestamp_at.path:
            is_number = isinstance(in_document(document, places.timestamp_at.path), int)
            _put(document, places.timestamp_at.path, int(timestamp) if is_number else timestamp)
        if places.at.path:
            signature = self._signature(Request("", "POST", Headers(), _dump(document)), timestamp)
            _put(document, places.at.path, self.scheme.prefixes[0] + signature)
        return _dump(document)

    def _timestamp(self, now: float) -> str | None:
        return write_timestamp(now, self.scheme.timestamp_unit) if self.scheme.timestamped else None

    def _signature(self, request: Request, timestamp: str | None) -> str:
        parcel = Parcel(request, self.scheme.body_format)
        identifier = None if self._places.identifier_at is None else self._places.identifier_at.first(parcel)
        signed_at = None if timestamp is None else timestamp.encode()
        rest = Rest(parcel, self._url, self._key)
        return self._signer(message(self.scheme.template, request.body, signed_at, identifier, rest))


def _put(document: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for step in path[:-1]:
        inner = document.get(step)
        if not isinstance(inner, dict):
            inner = document[step] = {}
        document = inner
    document[path[-1]] = value


def _dump(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
