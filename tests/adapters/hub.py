"""A sender of our own, with as little to it as can be: `X-Hub-Signature-256: sha256=` and the hex HMAC-SHA256 of the
body; what the events are stands in headers, so that every body at all can be sent."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

from hookledger import Delivery, Event, Request, Source
from hookledger.errors import NotVerified

KEY = b"k-test-1"


def signature(body: bytes) -> str:
    """The header that makes a body verify."""
    return "sha256=" + hmac.new(KEY, body, hashlib.sha256).hexdigest()


class HubVerifier:
    def verify(self, request: Request, now: float) -> None:
        given = (request.headers.get("x-hub-signature-256") or "").encode("latin-1")
        if not hmac.compare_digest(given, signature(request.body).encode()):
            raise NotVerified("the signature is not that of the body")


def _read(request: Request) -> Sequence[Event]:
    return [Event(request.headers.get("x-event-id"), "ping")]


def _document(delivery: Delivery) -> Any:
    return delivery.body


def hub(name: str = "hub") -> Source:
    """The source of that sender."""
    return Source(
        name,
        "hub",
        HubVerifier(),
        _read,
        _document,
        lambda delivery: False,
        has_resource=False,
        has_version=False,
    )
