"""Where a source finds the id, type, resource and version of an event: paths, headers, functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qs
from uuid import uuid4

from hookledger.errors import SetupError, UnreadableBody
from hookledger.http import Request
from hookledger.sources.reading import Lookup, in_document

HEADER = "header:"
QUERY = "query:"
ROOT = "root:"
OUTER = "outer:"
POSITION = "item:position"
"""In a batch: the number of the item, from 0; for senders whose items have nothing else that tells them apart."""
SIGNED_ID = "signed:id"
"""As an event id: the id that the scheme of the provider signs."""
EACH_REQUEST = "each:request"
"""As an event id: every request is an event of its own. For senders that only say that something has changed, in the
same bytes each time: a request that is sent again is then one event more, while the digest of the bytes as the id would
lose every change after the first."""
MOST_QUERY_FIELDS = 1000

Format = Literal["json", "form", "bytes", "json-or-form"]


@dataclass(frozen=True, slots=True)
class Joined:
    """Several fields that together tell events apart.

    Args:
        fields: each as a `Field` is written; one that ends with "?" may be missing, all others must be there.
        by: what stands between them. In the values it is escaped, so that different values never look alike.
    """

    fields: tuple[str, ...]
    by: str = "/"


def joined(*fields: str, by: str = "/") -> Joined:
    """An id, resource or type put together from several fields: `joined("data.type", "data.id")`."""
    return Joined(fields, by)


@dataclass(frozen=True, slots=True)
class OfItem:
    """A field that a function reads from the document of the event: the body, or the item of a batch."""

    function: Callable[[Any], Any]


Field = str | Callable[[Request], Any]
"""A dotted path into the body ("data.items.0.id"), "header:Name", or a function of the request."""

OneField = str | Joined | OfItem | Callable[[Request], Any]
ProviderField = OneField | tuple[OneField, ...]
"""A field; or several, of which the first that is there counts. Paths lead into the event's own part of the body;
in a batch "root:a.b" leads into the whole body, and "outer:a.b" into the object that holds the list of items."""


@dataclass(slots=True)
class Look:
    """What a field is looked up in: a request, its parsed body, and the event's own part of it, with its number."""

    request: Request
    document: Any
    item: Any
    outer: Any
    lookup: Lookup = in_document
    position: int = 0


Reader = Callable[[Look], Any]


def field_reader(option: str, field: ProviderField | None, format: Format) -> Reader | None:
    """A field, ready to be read.

    Args:
        option: what it is, for messages.
        field: where it is found; None if nowhere.
        format: what the body is.

    Raises:
        SetupError: for a field that could not be read.
    """
    if field is None:
        return None
    if isinstance(field, tuple):
        readers = [_one(option, each, format) for each in field]
        if not readers:
            raise SetupError(f"{option}=() has no alternatives: give a path, or None")
        return _first(tuple(readers))
    return _one(option, field, format)


def _one(option: str, field: OneField, format: Format) -> Reader:
    if isinstance(field, Joined):
        if not field.fields or not field.by:
            raise SetupError(f"{option}=joined() needs fields to join, and something to stand between them")
        parts = [(_one(option, each.removesuffix("?"), format), each.endswith("?")) for each in field.fields]
        return _JoinedReader(tuple(parts), field.by)
    if isinstance(field, OfItem):
        return _guarded(option, lambda look: field.function(look.item))
    if callable(field):
        return _guarded(option, lambda look: field(look.request))
    if field == EACH_REQUEST:
        return lambda look: uuid4().hex
    if not isinstance(field, str) or not field.strip():
        raise SetupError(f'{option}={field!r} must be a path such as "data.id", "header:Name" or a function')
    if field == POSITION:
        return lambda look: look.position
    for kind in (HEADER, QUERY):
        if field.startswith(kind):
            name = field.removeprefix(kind).strip()
            if not name:
                raise SetupError(f'{option}={field!r} lacks the name of the {kind[:-1]}, as in "{kind}X-Event-Id"')
            return _in_header(name) if kind == HEADER else _in_query(name)
    if format == "bytes":
        raise SetupError(
            f'{option}={field!r} is a path, but format="bytes" has no document: use "header:Name", a function or None'
        )
    within = next((each for each in (ROOT, OUTER) if field.startswith(each)), "")
    path = tuple(field.removeprefix(within).split("."))
    if not all(path):
        raise SetupError(f"{option}={field!r} has an empty step between its dots")
    if within == ROOT:
        return lambda look: look.lookup(look.document, path)
    if within == OUTER:
        return lambda look: look.lookup(look.outer, path)
    if format == "json":
        return lambda look: in_document(look.item, path)
    return lambda look: look.lookup(look.item, path)


def _in_header(name: str) -> Reader:
    return lambda look: look.request.headers.get(name)


def _in_query(name: str) -> Reader:
    def read(look: Look) -> Any:
        try:
            found = parse_qs(look.request.query, max_num_fields=MOST_QUERY_FIELDS)
        except ValueError:
            return None
        return found.get(name, [None])[0]

    return read


def _guarded(option: str, function: Reader) -> Reader:
    def read(look: Look) -> Any:
        try:
            return function(look)
        except Exception as error:
            # A user's function that trips over what a sender sent: kept and shown, never a 500.
            raise UnreadableBody(f"the function {option}= raised {type(error).__name__}: {str(error)[:200]}") from error

    return read


def _first(readers: tuple[Reader, ...]) -> Reader:
    """The first alternative that is there and names something."""

    def read(look: Look) -> Any:
        for reader in readers:
            found = reader(look)
            if found is not None and found != "":
                return found
        return None

    return read


@dataclass(frozen=True, slots=True)
class _JoinedReader:
    parts: tuple[tuple[Reader, bool], ...]
    by: str

    def __call__(self, look: Look) -> str | None:
        texts: list[str] = []
        for reader, optional in self.parts:
            text = _as_text(reader(look))
            if text is None and not optional:
                return None
            texts.append("" if text is None else text.replace("%", "%25").replace(self.by, _escaped(self.by)))
        while texts and not texts[-1]:
            texts.pop()
        return self.by.join(texts) or None


def _escaped(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        try:
            return str(value)
        except ValueError:
            # More digits than Python converts; hexadecimal has no such limit.
            return hex(value) if isinstance(value, int) else None
    return value if isinstance(value, str) and value.strip() else None


def in_words(field: ProviderField | None) -> str:
    """A field as people read it, for tables."""
    if field is None:
        return ""
    if isinstance(field, tuple):
        return ", else ".join(in_words(each) for each in field)
    if isinstance(field, Joined):
        return f" {field.by} ".join(in_words(each.removesuffix("?")) for each in field.fields)
    if field == SIGNED_ID:
        return "the signed id"
    if field == EACH_REQUEST:
        return "none: every request is an event"
    if field == POSITION:
        return "the number of the item"
    if isinstance(field, str):
        return field.removeprefix(HEADER)
    doc = (field.function if isinstance(field, OfItem) else field).__doc__ or "computed"
    return doc.strip().partition("\n")[0].rstrip(".")
