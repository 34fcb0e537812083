"""Reads the exact bytes of a request's body from ASGI, within a size and a time.

A body that something else has read is the hard part: the server then stays silent until the client goes
away, just as it does for a client that sends slowly. uvicorn knows which it is, and is asked. Where nobody
can be asked (another server, or `receive` wrapped by a middleware) a bound on the first message decides, and
the answer names both causes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from hookledger.errors import BodyConsumed, BodyTooLarge, BodyTooSlow, ClientGone, NotUnderstood

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HELD = (bytes, bytearray)

FIRST_MESSAGE_SECONDS = 5.0
"""How long the first bytes may take where the server cannot be asked whether the body is still to come."""

CONSUMED = (
    "the request body was consumed before the receiver could read it: mount the receiver outside of the "
    "middleware that reads it, or let that middleware hand the body on unchanged"
)
PERHAPS_CONSUMED = f"the sender sent nothing, or {CONSUMED}"


def declared_length(scope: Scope) -> int | None:
    """The bytes that a request says its body has; None if only reading tells (chunked, HTTP/2)."""
    length: bytes | None = None
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return None
        if name == b"content-length":
            length = value
    if length is None:
        return 0 if scope.get("http_version", "1.1").startswith("1") else None
    if not length.isdigit():
        return None
    # Python refuses to convert thousands of digits; that many bytes are too many in any case.
    return int(length) if len(length) < 19 else sys.maxsize


def still_to_come(receive: Receive) -> bool | None:
    """Whether the server has more of the body for us, or waits for it; None if it cannot be asked.

    uvicorn's `receive` is a method of an object that holds what has come and was not yet handed over.
    """
    cycle = getattr(receive, "__self__", None)
    more, held, arrived = (getattr(cycle, name, None) for name in ("more_body", "body", "message_event"))
    if not isinstance(more, bool) or not isinstance(held, HELD) or not isinstance(arrived, asyncio.Event):
        return None
    return more or bool(held) or arrived.is_set()


def is_there(receive: Receive) -> bool:
    """Whether uvicorn has all that is left of the body, so that one message without any waiting brings it."""
    cycle = getattr(receive, "__self__", None)
    if getattr(cycle, "more_body", None) is not False or getattr(cycle, "disconnected", None) is not False:
        return False
    arrived = getattr(cycle, "message_event", None)
    return isinstance(getattr(cycle, "body", None), HELD) and isinstance(arrived, asyncio.Event) and arrived.is_set()


async def read_body(scope: Scope, receive: Receive, *, limit: int, timeout: float) -> bytes:
    """The body of a request.

    Args:
        scope: the request's, for its headers.
        receive: the request's.
        limit: bytes; one more is refused, without having been kept.
        timeout: seconds for the whole body.

    Raises:
        BodyTooLarge: over the limit; not read at all if the headers say so.
        BodyTooSlow: not there in time.
        ClientGone: the client closed the connection in the middle.
        BodyConsumed: something in front of us has read it, or a part of it.
        NotUnderstood: it ended before it began, and it cannot be told which of the last two it was.
    """
    length = declared_length(scope)
    if length == 0:
        return b""
    if length is not None and length > limit:
        raise BodyTooLarge(f"the body has {length} bytes, over the limit of {limit}")
    if is_there(receive):
        # The usual case, which needs no timer.
        return _checked((await receive()).get("body", b""), length, limit)
    expected = still_to_come(receive)
    if expected is False:
        raise BodyConsumed(CONSUMED)
    now = asyncio.get_running_loop().time()
    first_bound = timeout if expected else min(timeout, FIRST_MESSAGE_SECONDS)
    # A bytearray grows in place: thousands of tiny chunks cost no more memory than their bytes.
    body = bytearray()
    begun = False
    try:
        async with asyncio.timeout_at(now + first_bound) as bound:
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    if begun or expected:
                        raise ClientGone(f"the sender broke off after {len(body)} bytes of the body")
                    raise NotUnderstood(PERHAPS_CONSUMED)
                if not begun:
                    begun = True
                    bound.reschedule(now + timeout)
                chunk: bytes = message.get("body", b"")
                if len(body) + len(chunk) > limit:
                    raise BodyTooLarge(f"the body is over the limit of {limit} bytes")
                if not message.get("more_body", False):
                    whole = bytes(body) + chunk if body else chunk
                    break
                body += chunk
    except TimeoutError:
        if begun or expected:
            raise BodyTooSlow(f"{len(body)} bytes of the body came within {timeout:g} s, and not all") from None
        raise BodyTooSlow(f"nothing of the body came within {first_bound:g} s: {PERHAPS_CONSUMED}") from None
    return _checked(whole, length, limit)


def _checked(whole: bytes, length: int | None, limit: int) -> bytes:
    if len(whole) > limit:
        raise BodyTooLarge(f"the body is over the limit of {limit} bytes")
    if length is not None and len(whole) < length:
        raise BodyConsumed(CONSUMED)
    return whole


async def discard_body(receive: Receive, *, seconds: float, silence: float) -> None:
    """Read on without keeping anything, until the end, or the bound of time, or a longer silence.

    A connection that is closed while its client still sends is reset, and the client never sees the answer.

    Args:
        receive: the request's.
        seconds: for all of it.
        silence: seconds without a message after which the client is taken to have stopped.
    """
    if still_to_come(receive) is False:
        return
    end = asyncio.get_running_loop().time() + seconds
    try:
        while True:
            async with asyncio.timeout_at(min(end, asyncio.get_running_loop().time() + silence)):
                message = await receive()
            if not message.get("more_body", False):
                return
    except TimeoutError:
        return
