"""The sender of `hub`, whose key is fetched from a key server for each request."""

from __future__ import annotations

import hashlib
import hmac
import ssl
from dataclasses import replace

from hookledger import Request, Source
from hookledger.errors import NotVerified
from hookledger.sources.fetching import Fetch
from tests.adapters.hub import hub

FETCH_SECONDS = 120.0
"""Longer than any test waits: whatever is held up by the key server is held up for good."""


class KeyedVerifier:
    """Args:
    host: of the key server.
    authority: the file with its certificate authority.
    """

    needs_network = True

    def __init__(self, host: str, authority: str) -> None:
        self._url = f"https://{host}/key"
        self._fetch = Fetch([host], timeout=FETCH_SECONDS, context=ssl.create_default_context(cafile=authority))

    def verify(self, request: Request, now: float) -> None:
        key = self._fetch(self._url)
        given = (request.headers.get("x-hub-signature-256") or "").encode("latin-1")
        right = "sha256=" + hmac.new(key or b"", request.body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(given, right.encode()):
            raise NotVerified("the signature is not that of the body")


def keyed(host: str, authority: str) -> Source:
    """The source of that sender."""
    return replace(hub("keyed"), verifier=KeyedVerifier(host, authority))
