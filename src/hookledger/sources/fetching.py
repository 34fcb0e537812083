"""Fetching a document of a provider over https, from hosts that are pinned (D3)."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from hookledger.errors import Cause, KeysUnavailable, NotVerified, Refused, SetupError
from hookledger.sources.settings import Option

TIMEOUT = 2.0
"""Seconds that a fetch may take: senders wait 3 at the least."""
LARGEST_DOCUMENT = 512 * 1024  # bytes
NO_DOCUMENT = (404, 410)
_STEP = 64 * 1024
_URL = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[\x21-\x7e]*")
_HOST = re.compile(r"(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:[0-9]{1,5})?")

OwnFetch = Callable[[str, bytes | None, Sequence[tuple[str, str]]], bytes | None]
"""Fetches in our stead: gets a URL that was checked, the body to POST or None for GET, and headers; gives the document,
or None where the server says that there is none. Whatever it raises is taken for a server that is away."""

OWN_FETCH = Option(
    "fetch",
    "a function of (url, body, headers) that fetches in our stead, such as through a proxy, and gives the bytes",
    kind=Callable,
)
"""The setting of a provider whose keys are fetched."""


class PinnedHosts:
    """The hosts that a URL may lead to; the URL may have come from a request that is not verified yet.

    Args:
        hosts: "keys.example.com", "*.example.com" for any host below it, or a compiled pattern that the whole host
            matches. A port other than 443 must be named: "keys.example.com:8443".

    Raises:
        SetupError: for what names no host.
    """

    def __init__(self, hosts: Sequence[str | re.Pattern[str]]) -> None:
        if not hosts or isinstance(hosts, str):
            raise SetupError("the hosts that keys are fetched from must be a list of names, and not an empty one")
        for host in hosts:
            if isinstance(host, str) and not _HOST.fullmatch(host):
                raise SetupError(f"{host!r} names no host that keys could be fetched from")
        self._hosts = tuple(hosts)

    def check(self, url: str) -> SplitResult:
        """The parts of a URL that leads to one of the hosts over https.

        Raises:
            NotVerified: for any other; whoever sent it is not the provider.
        """
        parts = urlsplit(url) if isinstance(url, str) and len(url) < 2000 and _URL.fullmatch(url) else None
        host = "" if parts is None else parts.netloc.lower().removesuffix(":443")
        if parts is None or "#" in url or not any(self._is(host, each) for each in self._hosts):
            raise NotVerified("the request names a key server that is not the provider's", Cause.KEY_NOT_TRUSTED)
        return parts

    @staticmethod
    def _is(host: str, pinned: str | re.Pattern[str]) -> bool:
        if isinstance(pinned, re.Pattern):
            return pinned.fullmatch(host) is not None
        if pinned.startswith("*."):
            return host.endswith(pinned[1:]) and len(host) > len(pinned) - 1
        return host == pinned


class Fetch:
    """Fetches over https from pinned hosts: no redirects, no proxies, a bounded answer in bounded time.

    Args:
        hosts: see `PinnedHosts`.
        timeout: seconds for all of it but the look-up of the host's address, which the system bounds.
        largest: bytes of the answer.
        context: for tests with a certificate authority of their own.
        missing: whether another answer than 404 and 410 says that there is no such document, by its status and body.
        instead: fetches in our stead, once the host was checked.
    """

    def __init__(
        self,
        hosts: Sequence[str | re.Pattern[str]],
        *,
        timeout: float = TIMEOUT,
        largest: int = LARGEST_DOCUMENT,
        context: ssl.SSLContext | None = None,
        missing: Callable[[int, bytes], bool] | None = None,
        instead: OwnFetch | None = None,
    ) -> None:
        self._hosts = PinnedHosts(hosts)
        self._timeout = timeout
        self._largest = largest
        self._context = context
        self._missing = missing
        self._instead = instead

    def check(self, url: str) -> None:
        """Raise NotVerified for a URL that leads elsewhere."""
        self._hosts.check(url)

    def __call__(self, url: str, body: bytes | None = None, headers: Sequence[tuple[str, str]] = ()) -> bytes | None:
        """The document at a URL, by GET, or by POST of a body; None if the server says that there is none.

        Raises:
            NotVerified: for a URL that does not lead to a pinned host.
            KeysUnavailable: if the answer does not come in time, or is not 200.
        """
        parts = self._hosts.check(url)
        if self._instead is not None:
            return self._fetched_by_another(self._instead, url, body, headers)
        deadline = time.monotonic() + self._timeout
        context = self._context or ssl.create_default_context()
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=self._timeout, context=context
        )
        cut: threading.Timer | None = None
        try:
            connection.connect()
            # A timeout of the socket begins anew with every byte; what drips is cut off.
            cut = threading.Timer(max(0.0, deadline - time.monotonic()), _cut, [connection.sock])
            cut.daemon = True
            cut.start()
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            connection.request("GET" if body is None else "POST", target, body, dict(headers))
            status, document = self._answer(connection, parts.netloc)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = TimeoutError if time.monotonic() >= deadline else type(error)
            raise KeysUnavailable(f"the key server {parts.netloc} cannot be reached: {reason.__name__}") from None
        finally:
            if cut is not None:
                cut.cancel()
            connection.close()
        if time.monotonic() >= deadline:
            # It may have been cut in the middle.
            raise KeysUnavailable(f"the key server {parts.netloc} cannot be reached: TimeoutError")
        if status == 200:
            return document
        if status in NO_DOCUMENT or (self._missing is not None and self._missing(status, document)):
            return None
        raise KeysUnavailable(f"the key server {parts.netloc} answered {status}")

    def _answer(self, connection: http.client.HTTPSConnection, host: str) -> tuple[int, bytes]:
        answer = connection.getresponse()
        if answer.status != 200 and self._missing is None:
            return answer.status, b""
        pieces: list[bytes] = []
        size = 0
        while piece := answer.read1(_STEP):
            size += len(piece)
            if size > self._largest:
                raise KeysUnavailable(f"the key server {host} sent more than {self._largest} bytes")
            pieces.append(piece)
        if answer.length:
            raise http.client.IncompleteRead(b"", answer.length)
        return answer.status, b"".join(pieces)

    def _fetched_by_another(
        self, instead: OwnFetch, url: str, body: bytes | None, headers: Sequence[tuple[str, str]]
    ) -> bytes | None:
        try:
            document = instead(url, body, headers)
        except Refused:
            raise
        except Exception as error:
            raise KeysUnavailable(f"fetch= raised {type(error).__name__}") from error
        if document is None:
            return None
        if not isinstance(document, bytes) or len(document) > self._largest:
            raise KeysUnavailable(f"fetch= gave no document of {self._largest} bytes at the most")
        return document


def _cut(connected: Any) -> None:
    # That of the plain socket: the one of TLS would take its state from under the thread that reads.
    with contextlib.suppress(OSError, AttributeError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
