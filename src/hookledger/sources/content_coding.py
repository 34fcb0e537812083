"""Bodies that come compressed: which bytes are signed, and inflating them within a bound (B012)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from hookledger.delivery import Delivery
from hookledger.errors import BodyTooLarge, NotUnderstood, UnreadableBody, UnsupportedEncoding
from hookledger.http import Headers, Request

ContentEncoding = Literal["none", "signed-compressed", "signed-plain"]

RULES = ("none", "signed-compressed", "signed-plain")
HEADER = "content-encoding"
MOST_MEMBERS = 64  # of a gzip file; senders write one
_STEP = 256 * 1024  # bytes that are taken, and inflated, at a time
_GZIP, _DEFLATE = zlib.MAX_WBITS | 16, zlib.MAX_WBITS
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _DEFLATE}


def as_signed(rule: ContentEncoding, request: Request, largest: int) -> Request:
    """The request with the bytes that its signature covers.

    Args:
        rule: of the source.
        request: as it came.
        largest: bytes that the body may have once inflated.

    Raises:
        UnsupportedEncoding: for a coding that the source was not told to take, or that is not known.
        BodyTooLarge: if the inflated body is over the limit.
        NotUnderstood: if it cannot be inflated, and the signature can therefore not be checked.
    """
    coding = coding_of(request.headers)
    if coding is None:
        return request
    if rule == "none":
        raise UnsupportedEncoding(
            f"the body comes in the Content-Encoding {coding[:40]!r}, and the source takes none: set "
            'content_encoding="signed-plain" or "signed-compressed", whichever the provider does'
        )
    if coding not in _WINDOWS:
        raise UnsupportedEncoding(f"the Content-Encoding {coding[:40]!r} is not known: gzip and deflate are")
    if rule == "signed-compressed":
        return request
    try:
        return replace(request, body=inflate(request.body, coding, largest))
    except UnreadableBody as error:
        raise NotUnderstood(str(error)) from None


def as_read(rule: ContentEncoding, request: Request, largest: int) -> Request:
    """The verified request with the bytes that are read.

    Args:
        rule: of the source.
        request: as `as_signed` gave it.
        largest: bytes that the body may have once inflated.

    Raises:
        BodyTooLarge: if the inflated body is over the limit.
        UnreadableBody: if it cannot be inflated.
    """
    coding = None if rule != "signed-compressed" else coding_of(request.headers)
    return request if coding is None else replace(request, body=inflate(request.body, coding, largest))


def coding_of(headers: Headers) -> str | None:
    """The Content-Encoding of a request in lower case; None for none and for `identity`."""
    value = headers.get(HEADER)
    if value is None:
        return None
    codings = [each.strip().lower() for line in headers.all(HEADER) for each in line.split(",")]
    return ", ".join(each for each in codings if each not in ("", "identity")) or None


def inflate(body: bytes, coding: str, largest: int | None = None) -> bytes:
    """The inflated bytes of a body, in memory that its bound bounds.

    Args:
        body: one or several gzip members, or a zlib stream.
        coding: gzip, x-gzip or deflate.
        largest: bytes that may come of it; None for a body that was bounded when it was received.

    Raises:
        BodyTooLarge: if there are more.
        UnreadableBody: if the bytes are damaged, cut off, or followed by others.
    """
    stream = _Inflating(coding, largest)
    for start in range(0, len(body), _STEP):
        stream.feed(body[start : start + _STEP])
    return stream.whole()


class _Inflating:
    """Inflates a body piece by piece, so that neither time nor memory grows beyond its bound."""

    def __init__(self, coding: str, largest: int | None) -> None:
        self._coding = coding
        self._largest = largest
        self._members = 0
        self._size = 0
        self._pieces: list[bytes] = []
        self._begin()

    def _begin(self) -> None:
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise UnreadableBody(f"the body is {self._coding} of more than {MOST_MEMBERS} members")
        self._stream = zlib.decompressobj(_WINDOWS[self._coding])
        self._begun = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        while data:
            if self._stream.eof:
                if _WINDOWS[self._coding] != _GZIP:
                    raise UnreadableBody(f"the body is {self._coding}, and followed by other bytes")
                self._begin()
            room = _STEP if self._largest is None else min(_STEP, self._largest - self._size + 1)
            try:
                piece = self._stream.decompress(data, room)
            except zlib.error:
                raise UnreadableBody(f"the body is not {self._coding}: its bytes are damaged") from None
            self._begun = True
            self._size += len(piece)
            if self._largest is not None and self._size > self._largest:
                raise BodyTooLarge(f"the inflated body has more than the limit of {self._largest} bytes")
            self._pieces.append(piece)
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail

    def whole(self) -> bytes:
        """All that was inflated."""
        if not self._stream.eof:
            raise UnreadableBody(f"the body is not {self._coding}: it is {'cut off' if self._begun else 'empty'}")
        return b"".join(self._pieces)


@dataclass(frozen=True, slots=True)
class InflatedDocument:
    """The document of a delivery whose payload is kept compressed, as it came."""

    document: Callable[[Delivery], Any]

    def __call__(self, delivery: Delivery) -> Any:
        coding = coding_of(delivery.headers)
        if coding in _WINDOWS:
            delivery = replace(delivery, body=inflate(delivery.body, coding))
        return self.document(delivery)
