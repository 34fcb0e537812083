"""Fetching a document of a provider over https, from hosts that are pinned (D3)."""

from __future__ import annotations

import http.client
import re
import ssl
import time
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from hookledger.errors import Cause, KeysUnavailable, NotVerified, SetupError

TIMEOUT = 2.0
"""Seconds that a fetch may take: senders wait 3 at the least."""
LARGEST_DOCUMENT = 512 * 1024  # bytes
NO_DOCUMENT = (404, 410)
_STEP = 64 * 1024
_URL = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[\x21-\x7e]*")
_HOST = re.compile(r"(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:[0-9]{1,5})?")


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
        timeout: seconds for all of it.
        largest: bytes of the answer.
        context: for tests with a certificate authority of their own.
    """

    def __init__(
        self,
        hosts: Sequence[str | re.Pattern[str]],
        *,
        timeout: float = TIMEOUT,
        largest: int = LARGEST_DOCUMENT,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._hosts = PinnedHosts(hosts)
        self._timeout = timeout
        self._largest = largest
        self._context = context

    def check(self, url: str) -> None:
        """Raise NotVerified for a URL that leads elsewhere."""
        self._hosts.check(url)

    def __call__(self, url: str, body: bytes | None = None, headers: Sequence[tuple[str, str]] = ()) -> bytes | None:
        """The document at a URL, by GET, or by POST of a body; None if the server says that there is none (404, 410).

        Raises:
            NotVerified: for a URL that does not lead to a pinned host.
            KeysUnavailable: if the answer does not come in time, or is not 200.
        """
        parts = self._hosts.check(url)
        deadline = time.monotonic() + self._timeout
        context = self._context or ssl.create_default_context()
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=self._timeout, context=context
        )
        try:
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            connection.request("GET" if body is None else "POST", target, body, dict(headers))
            return self._read(connection, deadline, parts.netloc)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise KeysUnavailable(f"the key server {parts.netloc} cannot be reached: {type(error).__name__}") from None
        finally:
            connection.close()

    def _read(self, connection: http.client.HTTPSConnection, deadline: float, host: str) -> bytes | None:
        self._wait_until(connection, deadline)
        answer = connection.getresponse()
        if answer.status in NO_DOCUMENT:
            return None
        if answer.status != 200:
            raise KeysUnavailable(f"the key server {host} answered {answer.status}")
        pieces: list[bytes] = []
        size = 0
        while piece := answer.read1(_STEP):
            size += len(piece)
            if size > self._largest:
                raise KeysUnavailable(f"the key server {host} sent more than {self._largest} bytes")
            pieces.append(piece)
            self._wait_until(connection, deadline)
        return b"".join(pieces)

    @staticmethod
    def _wait_until(connection: http.client.HTTPSConnection, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if connection.sock is not None:
            connection.sock.settimeout(left)
