"""The signed requests that the receivers get, and how they are verified. Nothing but the standard library."""

from __future__ import annotations

import hashlib
import hmac

from benchmarks.deliveries import EVENT_TYPE, SOURCE

SECRET = "the secret of the benchmark"
SIGNATURE_HEADER = "X-Signature"
PATH = f"/webhooks/{SOURCE}"
RESOURCES = 1000
FIRST = 1_000_000_000
"""Numbers of events begin here, so that all have the same length."""


def verifies(signature: str | bytes, body: bytes) -> bool:
    """Whether the signature is that of the body."""
    wanted = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest().encode()
    given = signature.encode("latin-1") if isinstance(signature, str) else signature
    return hmac.compare_digest(wanted, given)


class Requests:
    """Signed requests with bodies of one size, each with an event of its own. All are made beforehand.

    Args:
        count: how many there are.
        body: bytes of each body.
    """

    def __init__(self, count: int, body: int) -> None:
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {body}\r\n{SIGNATURE_HEADER}: "
        )
        self._head = head.encode()
        self._made = [self._make(FIRST + number, body) for number in range(count)]
        self._next = 0

    def take(self) -> bytes | None:
        """The next request, or None if there are no more."""
        if self._next == len(self._made):
            return None
        self._next += 1
        return self._head + self._made[self._next - 1]

    @staticmethod
    def event_id(number: int) -> str:
        """The id of the event of the n-th request taken, from 1."""
        return f"evt_{FIRST + number - 1}"

    @property
    def taken(self) -> int:
        """How many were taken."""
        return self._next

    @staticmethod
    def _make(number: int, size: int) -> bytes:
        begin = (
            f'{{"id": "evt_{number}", "type": "{EVENT_TYPE}", "version": {number}, '
            f'"data": {{"object": {{"id": "cus_{number % RESOURCES:04}", "more": "'
        ).encode()
        body = begin.ljust(size - 4, b"m") + b'"}}}'
        signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest().encode()
        return signature + b"\r\n\r\n" + body
