"""What the receiver and the worker need to know of a sender."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hookledger.delivery import Delivery, Event
from hookledger.errors import SetupError
from hookledger.http import Headers, Request, Response

ACCEPTED = Response(200, b"ok")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


class Verifier(Protocol):
    """Decides whether a request was sent by somebody who knows the secret."""

    def verify(self, request: Request, now: float) -> None:
        """Return if the request verifies.

        Args:
            request: with the exact bytes.
            now: Unix time in seconds, for schemes with a timestamp.

        Raises:
            NotVerified: with the reason, for the log; never anything else, whatever the sender sent.
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
        accepted: the answer to an accepted or repeated request.
        has_resource, has_version: whether `read` can tell them; a snapshot handler needs both, from here or
            from functions of its own.
    """

    name: str
    provider: str
    verifier: Verifier = field(repr=False)
    read: Callable[[Request], Sequence[Event]] = field(repr=False)
    document: Callable[[Delivery], Any] = field(repr=False)
    deleted: Callable[[Delivery], bool] = field(repr=False)
    handshake: Callable[[Request], Response | None] = field(default=never, repr=False)
    sign: Callable[[bytes, float], Headers] | None = field(default=None, repr=False)
    accepted: Response = field(default=ACCEPTED, repr=False)
    has_resource: bool = True
    has_version: bool = True

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise SetupError(
                f"the source name {self.name!r} cannot stand in a URL: use letters, digits, '.', '_' and '-', "
                "100 at the most, beginning with a letter or digit"
            )
