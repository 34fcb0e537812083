"""Documents that come inside another form: as a field of a form, or a part of a multipart body."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hookledger.delivery import Delivery, Event
from hookledger.errors import UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources.event_reader import EventReader
from hookledger.sources.places import wire
from hookledger.sources.provider import Reads
from hookledger.sources.reading import read_form

Unwrap = Callable[[Headers, bytes], bytes]
"""Gives the document in a body; raises UnreadableBody if there is none."""

MOST_PARTS = 100
_BOUNDARY = re.compile(
    r"multipart/form-data\s*;.*?\bboundary=(\"?)([0-9A-Za-z'()+_,./:=? -]{1,70})\1(?:\s*;|\s*$)", re.I
)


def reads_within(unwrap: Unwrap, reader: EventReader) -> Reads:
    """Reading of a document that comes in another form.

    Args:
        unwrap: gives the document.
        reader: of the document.
    """

    def read(request: Request) -> Sequence[Event]:
        try:
            document = unwrap(request.headers, request.body)
        except UnreadableBody as error:
            return (Event(None, "", unreadable=str(error)),)
        return reader.read(replace(request, body=document))

    def document(delivery: Delivery) -> Any:
        return reader.document(replace(delivery, body=unwrap(delivery.headers, delivery.body)))

    return Reads(read, document)


def in_field(name: str) -> Unwrap:
    """The document in a field of a form."""

    def unwrap(headers: Headers, body: bytes) -> bytes:
        values = read_form(body).get(name)
        if not values:
            raise UnreadableBody(f"the form has no field {name!r}")
        return values[0].encode("utf-8", "surrogateescape")

    return unwrap


def in_part(name: str) -> Unwrap:
    """The document in a part of a `multipart/form-data` body. https://www.rfc-editor.org/rfc/rfc7578"""
    # It begins at a line, so that no line is searched from each of its bytes on.
    wanted = re.compile(
        rb'^content-disposition:[^\r\n]*\bname="?' + re.escape(name.encode()) + rb'"?\s*(;|\r|\n|$)', re.I | re.M
    )

    def unwrap(headers: Headers, body: bytes) -> bytes:
        found = _BOUNDARY.match((headers.get("content-type") or "").strip())
        if found is None:
            raise UnreadableBody("the body is no multipart/form-data with a boundary")
        delimiter = b"\r\n--" + wire(found.group(2).rstrip())
        for part in (b"\r\n" + body).split(delimiter, MOST_PARTS)[1:MOST_PARTS]:
            head, separator, content = part.partition(b"\r\n\r\n")
            if separator and wanted.search(head):
                return content
        raise UnreadableBody(f"the body has no part {name!r}")

    return unwrap
