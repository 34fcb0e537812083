"""A client that signs and posts as the sources of an inbox would, to the core or over HTTP."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from sqlalchemy import Engine

from hookledger.http import Request, Response
from hookledger.inbox import Inbox
from hookledger.receive import Intake
from hookledger.testing.signing import signed

Over = Literal["core", "http"]


class Way(Protocol):
    """How requests get to a receiver."""

    def send(self, request: Request) -> Response:
        """The answer to a request."""

    def close(self) -> None:
        """Let what was taken be committed, and end."""


class InboxClient:
    """Posts to a receiver of an inbox.

    Args:
        inbox: whose sources sign.
        way: to the receiver.
    """

    def __init__(self, inbox: Inbox, way: Way) -> None:
        self.inbox = inbox
        self._way = way

    def post(
        self,
        source: str,
        event: Mapping[str, Any] | Sequence[Any] | bytes | str,
        *,
        event_id: str | None = None,
        event_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        at: float | None = None,
    ) -> Response:
        """Sign an event as the provider of the source would, and post it. Arguments and errors are those of
        `hookledger.testing.signed`.

        Returns:
            The answer; its status is 2xx if the event is stored.
        """
        return self.send(
            signed(self.inbox, source, event, event_id=event_id, event_type=event_type, headers=headers, at=at)
        )

    def send(self, request: Request) -> Response:
        """Post a request as it is: a captured one, or one that must be refused."""
        return self._way.send(request)

    def close(self) -> None:
        """Let what was taken be committed. The fixture does it by itself."""
        self._way.close()


class ToTheCore:
    """Calls the intake, as an adapter does.

    Args:
        inbox: of the receiver.
        engine: of its ledger.
    """

    def __init__(self, inbox: Inbox, engine: Engine) -> None:
        self._intake = Intake(inbox, engine)

    def send(self, request: Request) -> Response:
        """The answer to a request."""
        return self._intake.receive_blocking(request)

    def close(self) -> None:
        """Let what was taken be committed, and end."""
        self._intake.close()


class OverHttp:
    """Posts to a real server, at 127.0.0.1.

    Args:
        port: where it listens.
        prefix: what stands before the source in the path.
        timeout: seconds to wait for an answer.
        end: ends the server.
    """

    def __init__(self, port: int, prefix: str, timeout: float, end: Any = None) -> None:
        self._port, self._prefix, self._timeout, self._end = port, prefix.rstrip("/"), timeout, end
        self._lock = threading.Lock()

    def send(self, request: Request) -> Response:
        """The answer to a request.

        Raises:
            OSError: if there is none.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._timeout)
        try:
            target = f"{self._prefix}/{request.source}" + (f"?{request.query}" if request.query else "")
            connection.putrequest(request.method, target, skip_accept_encoding=True)
            for name, value in request.headers:
                connection.putheader(name, value.encode("latin-1", "replace"))
            if "Content-Length" not in request.headers:
                connection.putheader("Content-Length", str(len(request.body)))
            connection.endheaders(request.body)
            answer = connection.getresponse()
            return Response(answer.status, answer.read(), tuple(answer.getheaders()))
        finally:
            connection.close()

    def close(self) -> None:
        """End the server."""
        if self._end is not None:
            self._end()
