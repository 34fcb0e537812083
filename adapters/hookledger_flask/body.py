"""Reads the exact bytes of a request's body from WSGI, within a size, whatever the host application did.

Flask's own ways are passed by: `request.data` is empty for forms, a small MAX_CONTENT_LENGTH of the
application would refuse large deliveries, and a chunked body counts as empty on servers that do not end it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import IO

from flask import Request
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge
from werkzeug.wsgi import get_content_length, get_input_stream

from hookledger.errors import BodyConsumed, BodyTooLarge, ClientGone, NotUnderstood, Refused

log = logging.getLogger(__name__)

PIECE = 64 * 1024  # bytes

CONSUMED = (
    "the request body was consumed before the receiver could read it: leave the receiver's requests out of "
    "the before_request function that reads it, or call request.get_data() there first"
)
PERHAPS_CONSUMED = (
    "the sender sent nothing, or the request body was consumed before the receiver could read it: let the "
    "WSGI middleware that reads it hand it on unchanged"
)


class LengthRequired(Refused):
    """The body comes in chunks, and the server does not tell where it ends."""

    status = 411


def is_chunked(request: Request) -> bool:
    """Whether the request has a body whose length it does not say."""
    return "HTTP_TRANSFER_ENCODING" in request.environ and not request.environ.get("CONTENT_LENGTH")


def has_body(request: Request) -> bool:
    """Whether bytes follow the head of the request."""
    return is_chunked(request) or bool(get_content_length(request.environ))


def is_touched(request: Request) -> bool:
    """Whether the application has asked for the body, by whatever name: Flask keeps the stream from then on."""
    return "stream" in vars(request)


def input_of(request: Request) -> IO[bytes]:
    """The stream of the body, ending where the body ends, at the place up to which it has been read."""
    return request.stream if is_touched(request) else get_input_stream(request.environ)


def read_body(request: Request, limit: int) -> bytes:
    """The body of a request.

    How long it may take is up to the WSGI server: a thread that waits for bytes cannot be called back.

    Args:
        request: Flask's, read or unread.
        limit: bytes; one more is refused, without having been kept.

    Raises:
        BodyTooLarge: over the limit; not read at all if the headers say so.
        LengthRequired: chunked, on a server that cannot say where the body ends.
        ClientGone: the client closed the connection in the middle.
        BodyConsumed: a function of the application has read it.
        NotUnderstood: it is malformed, or it ended before it began and it cannot be told why.
    """
    if not has_body(request):
        return b""
    chunked = is_chunked(request)
    length = 0 if chunked else get_content_length(request.environ) or 0
    if length > limit:
        raise BodyTooLarge(f"the body has {length} bytes, over the limit of {limit}")
    if chunked and not request.environ.get("wsgi.input_terminated"):
        raise LengthRequired("a chunked body cannot be read under this WSGI server; use gunicorn or waitress")
    touched = is_touched(request)
    body = _read(input_of(request), limit)
    if touched and not body:
        # The stream is at its end, so this only looks whether the application has kept the bytes.
        body = request.get_data(cache=False)
        if len(body) > limit:
            raise BodyTooLarge(f"the body is over the limit of {limit} bytes")
    if len(body) >= length:
        return body
    if touched:
        raise BodyConsumed(CONSUMED)
    if body:
        raise ClientGone(f"the sender broke off after {len(body)} of {length} bytes of the body")
    raise NotUnderstood(PERHAPS_CONSUMED)


def _read(stream: IO[bytes], limit: int) -> bytes:
    # A bytearray grows in place: thousands of tiny chunks cost no more memory than their bytes.
    body = bytearray()
    while piece := _piece(stream, len(body)):
        if len(body) + len(piece) > limit:
            raise BodyTooLarge(f"the body is over the limit of {limit} bytes")
        body += piece
    return bytes(body)


def _piece(stream: IO[bytes], so_far: int) -> bytes:
    try:
        return stream.read(PIECE)
    except RequestEntityTooLarge:
        raise BodyTooLarge("the body is over the application's MAX_CONTENT_LENGTH") from None
    except (ClientDisconnected, OSError) as error:
        raise ClientGone(f"the sender broke off after {so_far} bytes of the body") from error
    except Exception as error:
        # Servers have errors of their own for malformed chunks; for us they are the sender's doing.
        raise NotUnderstood(f"the body could not be read: {type(error).__name__}") from error


def discarding(answer: bytes, stream: IO[bytes], seconds: float) -> Iterator[bytes]:
    """The answer, and then read on without keeping anything, so that a client which is still sending sees
    the answer instead of a reset connection.

    Args:
        answer: the body of the response.
        stream: the input of the server.
        seconds: after which the rest is left.
    """
    yield answer
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end and stream.read(PIECE):
            pass
    except Exception as error:  # the client has its answer; what it does now is of no interest
        log.debug("a client stopped sending: %s", type(error).__name__)
