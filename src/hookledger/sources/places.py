"""Where a request holds a signature, a timestamp, an id or a token: in a header, the query or the body."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qs

from hookledger.errors import Cause, NotVerified, SetupError
from hookledger.http import Request
from hookledger.sources.reading import in_document, in_form
from hookledger.sources.unverified import unverified_form, unverified_json

BODY = "body:"
QUERY = "query:"
LONGEST_NUMBER = 40  # digits of a number in the body that is signed as text
MOST_QUERY_FIELDS = 1000
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

BodyFormat = Literal["json", "form"]


def wire(text: str) -> bytes:
    """The bytes of a header value as they came: adapters decode them as Latin-1."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _decoded(text: str) -> bytes:
    """The bytes behind the escapes of a query."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


class Parcel:
    """A request whose query and body are parsed when first asked for, and once."""

    __slots__ = ("_document", "_format", "_query", "request")

    def __init__(self, request: Request, format: BodyFormat = "json") -> None:
        self.request = request
        self._format = format

    def in_body(self, path: tuple[str, ...]) -> list[bytes]:
        """The value at a path into the body; nothing where there is no text or whole number.

        Raises:
            NotVerified: if the body is not what it should be.
        """
        # Set when first asked for: most requests are never asked.
        if not hasattr(self, "_document"):
            self._document = self._read()
        look = in_document if self._format == "json" else in_form
        found = look(self._document, path)
        if isinstance(found, str):
            return [found.encode("utf-8", "surrogatepass" if self._format == "json" else "surrogateescape")]
        if isinstance(found, int) and not isinstance(found, bool) and abs(found) < 10**LONGEST_NUMBER:
            return [str(found).encode()]
        return []

    def in_query(self, name: str) -> list[bytes]:
        """Every value of that name in the query, decoded."""
        if not hasattr(self, "_query"):
            try:
                self._query = parse_qs(
                    self.request.query,
                    keep_blank_values=True,
                    errors="surrogateescape",
                    max_num_fields=MOST_QUERY_FIELDS,
                )
            except ValueError:
                self._query = {}
        return [_decoded(value) for value in self._query.get(name, ())]

    def _read(self) -> Any:
        read = unverified_json if self._format == "json" else unverified_form
        return read(self.request.body)


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a request.

    Args:
        written: a header ("X-Sig"), a family of numbered headers ("X-Sig-*"), "query:name" or "body:a.b".

    Raises:
        SetupError: for a text that is none of them.
    """

    written: str
    header: str | None = field(init=False, repr=False)
    family: str | None = field(init=False, repr=False)
    query: str | None = field(init=False, repr=False)
    path: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        written = self.written
        header = family = query = None
        path: tuple[str, ...] = ()
        if isinstance(written, str) and written.startswith(BODY):
            path = tuple(written.removeprefix(BODY).split("."))
        elif isinstance(written, str) and written.startswith(QUERY):
            query = written.removeprefix(QUERY)
        elif not isinstance(written, str) or not _HEADER_NAME.fullmatch(written):
            raise SetupError(f"{written!r} is not the name of a header")
        elif written.endswith("*"):
            family = written[:-1].lower()
        else:
            header = written
        if query == "" or family == "" or (path and not all(path)):
            raise SetupError(f'{written!r} lacks a name, as in "query:token", "X-Sig-*" or "body:signature.token"')
        for name, value in (("header", header), ("family", family), ("query", query), ("path", path)):
            object.__setattr__(self, name, value)

    def values(self, parcel: Parcel) -> list[bytes]:
        """What the request holds there, in order; nothing if it is not there.

        Raises:
            NotVerified: if the place is in the body, and the body cannot be parsed.
        """
        if self.header is not None:
            return [wire(value) for value in parcel.request.headers.all(self.header)]
        if self.family is not None:
            return [wire(value) for name, value in parcel.request.headers if name.lower().startswith(self.family)]
        if self.query is not None:
            return parcel.in_query(self.query)
        return parcel.in_body(self.path)

    def first(self, parcel: Parcel) -> bytes | None:
        """The first of the values, or None."""
        if self.header is not None:
            value = parcel.request.headers.get(self.header)
            return None if value is None else wire(value)
        values = self.values(parcel)
        return values[0] if values else None

    def holds(self, parcel: Parcel) -> bool:
        """Whether the request holds anything there."""
        if self.header is not None:
            return self.header in parcel.request.headers
        return bool(self.values(parcel))

    @property
    def in_words(self) -> str:
        """The place as a message names it."""
        if self.query is not None:
            return f"query parameter {self.query}"
        if self.path:
            return f"field {'.'.join(self.path)} of the body"
        return f"header {self.written}"


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one spelling of a scheme, e.g. `webhook-*` or `svix-*`; each as `Place` has it.

    Args:
        signature: holds the signatures, or the token.
        timestamp: holds the timestamp.
        identifier: holds the id that is signed.

    Raises:
        SetupError: for a text that is no place.
    """

    signature: str
    timestamp: str | None = None
    identifier: str | None = None
    at: Place = field(init=False, repr=False)
    timestamp_at: Place | None = field(init=False, repr=False)
    identifier_at: Place | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", Place(self.signature))
        object.__setattr__(self, "timestamp_at", None if self.timestamp is None else Place(self.timestamp))
        object.__setattr__(self, "identifier_at", None if self.identifier is None else Place(self.identifier))


def missing(places: Sequence[Place]) -> NotVerified:
    """The refusal of a request that has nothing at any of these places."""
    if all(place.header or place.family for place in places):
        said = f"the header {' or '.join(place.written for place in places)} is missing"
    else:
        said = f"the {' or the '.join(place.in_words for place in places)} is missing"
    return NotVerified(said, Cause.SIGNATURE_MISSING, place=places[0].written)
