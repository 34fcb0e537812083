"""What the receiver and the worker need to know of a sender."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hookledger.delivery import Delivery, Event
from hookledger.errors import SetupError
from hookledger.http import Headers, Request, Response
from hookledger.sources.content_coding import RULES, ContentEncoding, InflatedDocument
from hookledger.sources.reflection import reflected

ACCEPTED = Response(200, b"ok")
REFUSED_STATUS = 401
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verifier knows of a request that verified.

    Args:
        secret: which of the source's secrets signed it, counted from 0.
        account: whose it is, where one source serves many accounts with secrets of their own.
    """

    secret: int = 0
    account: str | None = None


class Verifier(Protocol):
    """Decides whether a request was sent by somebody who knows the secret.

    A verifier that waits for anything but the processor, such as keys fetched over the network, has an attribute
    `needs_network` that is true; the receiver then runs it in a thread.
    """

    def verify(self, request: Request, now: float) -> Verified | None:
        """Return if the request verifies; with what is known of it, or None for the first secret and no account.

        Args:
            request: with the exact bytes.
            now: Unix time in seconds, for schemes with a timestamp.

        Raises:
            NotVerified: with the reason, for the log.
            KeysUnavailable: if the keys cannot be had now; the sender comes again. Never anything else, whatever
                the sender sent.
        """


def never(_: Any) -> None:
    """A handshake that no request is."""


@dataclass(frozen=True)
class Source:
    """A configured sender.

    Args:
        name: the last part of the receiver's URL, and a part of every key in the ledger.
        provider: which kind of sender it is, e.g. "stripe".
        verifier: decides whether a request is genuine.
        read: gives the events of a verified request; raises UnreadableBody if it cannot.
        document: gives the document of one delivery, for `delivery.data`.
        deleted: whether a delivery says that its resource is gone.
        handshake: the answer to a verified request that carries no event, else None.
        sign: headers that make a body verify, for `hookledger send` and tests; None where it cannot be
            done with the configured secret.
        accepted: the answer to an accepted or repeated request; 2xx.
        has_resource, has_version: whether `read` can tell them; a snapshot handler needs both, from here or
            from functions of its own.
        sign_body: puts into a body what the provider signs there, before `sign`; None where that is nothing.
        sign_query: what a request has in the query of its URL to verify, such as a token.
        probe: the answer to a GET, HEAD or OPTIONS by which the provider looks at the URL, else None for the
            usual one.
        unverified_handshake: the answer to a POST that comes before there is a secret, else None. It reflects what
            anybody may have sent: it is answered as plain text or JSON, its length is bounded, nothing is stored.
        refused_status: the answer to a request that does not verify.
        content_encoding: what a Content-Encoding means: "none": such requests are refused with 415;
            "signed-compressed": the signature covers the bytes as they came; "signed-plain": the inflated ones.

    Raises:
        SetupError: for a name that cannot stand in a URL, or answers that a provider would misunderstand.
    """

    name: str
    provider: str
    verifier: Verifier = field(repr=False)
    read: Callable[[Request], Sequence[Event]] = field(repr=False)
    document: Callable[[Delivery], Any] = field(repr=False)
    deleted: Callable[[Delivery], bool] = field(repr=False)
    handshake: Callable[[Request], Response | None] = field(default=never, repr=False)
    sign: Callable[..., Headers] | None = field(default=None, repr=False)
    accepted: Response = field(default=ACCEPTED, repr=False)
    has_resource: bool = True
    has_version: bool = True
    sign_body: Callable[[bytes, float], bytes] | None = field(default=None, repr=False)
    sign_query: str = field(default="", repr=False)
    probe: Callable[[Request], Response | None] = field(default=never, repr=False)
    unverified_handshake: Callable[[Request], Response | None] = field(default=never, repr=False)
    refused_status: int = REFUSED_STATUS
    content_encoding: ContentEncoding = "none"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise SetupError(
                f"the source name {self.name!r} cannot stand in a URL: use letters, digits, '.', '_' and '-', "
                "100 at the most, beginning with a letter or digit"
            )
        if not 200 <= self.accepted.status < 300:
            raise SetupError(f"the source {self.name!r}: accepted= must answer with 2xx, else all is sent again")
        if not 400 <= self.refused_status < 500 or self.refused_status == 410:
            raise SetupError(
                f"the source {self.name!r}: refused_status={self.refused_status!r} must be 4xx, and not 410, "
                "by which providers switch the endpoint off"
            )
        if self.content_encoding not in RULES:
            raise SetupError(
                f"the source {self.name!r}: content_encoding={self.content_encoding!r} is not known: "
                f"use one of {', '.join(RULES)}"
            )
        if self.content_encoding != "none" and not isinstance(self.document, InflatedDocument):
            # The ledger keeps the bytes as they came.
            object.__setattr__(self, "document", InflatedDocument(self.document))

    @property
    def needs_network(self) -> bool:
        """Whether verifying may wait for the network, so that it must not run in an event loop."""
        return bool(getattr(self.verifier, "needs_network", False))

    def answer_probe(self, request: Request) -> Response | None:
        """The answer to a GET, HEAD or OPTIONS, or None for the receiver's usual one."""
        return reflected(self.name, self.probe, request)

    def answer_unverified(self, request: Request) -> Response | None:
        """The answer to a POST that needs no signature, or None for all others."""
        return reflected(self.name, self.unverified_handshake, request)

    def signed(self, body: bytes, now: float, **described: str) -> Request:
        """A request as the provider would send it: `hookledger send` and tests.

        Args:
            body: the bytes to be sent; a signature in them is put there.
            now: Unix time in seconds.
            described: `identifier` and `event_type`, where headers carry them.

        Raises:
            SetupError: if it cannot be signed with the configured secret.
            UnreadableBody: for a body that the provider could not sign, because the signature is in it.
        """
        if self.sign is None:
            raise SetupError(f"the source {self.name!r} cannot be signed for with its configured secret")
        if self.sign_body is not None:
            body = self.sign_body(body, now)
        return Request(self.name, "POST", self.sign(body, now, **described), body, query=self.sign_query)
