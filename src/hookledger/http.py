"""What the core knows of HTTP: a request, a response, and headers that keep order and repeats.

Adapters translate between these and their framework; nothing here knows ASGI or WSGI.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hookledger.storable import text as make_storable

_encode = json.JSONEncoder(separators=(",", ":")).encode


class Headers:
    """Header lines in the order they came, repeats kept; looked up without regard to case.

    Args:
        pairs: (name, value) as text. Bytes from the wire are decoded as Latin-1, which keeps every byte.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._pairs = tuple((str(name), str(value)) for name, value in pairs)

    @classmethod
    def from_wire(cls, pairs: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Headers from raw bytes, as an ASGI server gives them."""
        headers = cls()
        headers._pairs = tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs])
        return headers

    @classmethod
    def from_json(cls, text: str) -> Headers:
        """Headers from the ledger's jsonb column, given as its text."""
        return cls((name, value) for name, value in json.loads(text))

    def to_json(self) -> str:
        """An ordered list of pairs. NUL and half surrogate pairs cannot be held by jsonb and become U+FFFD."""
        text = _encode(self._pairs)
        if "\\u0000" in text or "\\ud" in text:
            storable = [(make_storable(name), make_storable(value)) for name, value in self._pairs]
            text = _encode(storable)
        return text

    def all(self, name: str) -> list[str]:
        """Every value of that name, in order."""
        wanted = name.lower()
        return [value for key, value in self._pairs if key.lower() == wanted]

    def get(self, name: str, default: str | None = None) -> str | None:
        """The first value of that name, or the default."""
        wanted = name.lower()
        for key, value in self._pairs:
            if key.lower() == wanted:
                return value
        return default

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Headers) and self._pairs == other._pairs

    def __hash__(self) -> int:
        return hash(self._pairs)

    def __repr__(self) -> str:
        # Values are left out: signatures and tokens must not reach a log by way of a repr.
        return f"Headers({[name for name, _ in self._pairs]!r})"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request as the core sees it.

    Args:
        source: the name in the path, percent-decoded.
        method: upper case.
        headers: as they came.
        body: the exact bytes, after the transfer coding and before any content coding.
        url: the URL as the server saw it; schemes that sign the URL use the public URL of the source instead.
        query: the raw query string, without the question mark.
    """

    source: str
    method: str
    headers: Headers
    body: bytes = field(repr=False)
    # Some providers have the secret in the query.
    url: str = field(default="", repr=False)
    query: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """What the adapter sends back.

    Args:
        status: the HTTP status; never a redirect, never 410.
        body: the exact bytes.
        headers: to be sent as they are; Content-Length is the adapter's or its server's.
    """

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/plain; charset=utf-8"),)

    @classmethod
    def json(cls, status: int, document: Any) -> Response:
        """A JSON answer, as some handshakes want it."""
        return cls(status, json.dumps(document).encode(), (("content-type", "application/json"),))
