"""The receiver as an ASGI application: reads the raw body, asks the core, writes its answer."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from urllib.parse import quote

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from hookledger.errors import ClientGone, HookledgerError, NotUnderstood
from hookledger.http import Headers, Request, Response
from hookledger.inbox import Inbox
from hookledger.receive import Intake, IntakeSettings
from hookledger_starlette.body import (
    PERHAPS_CONSUMED,
    Receive,
    Scope,
    Send,
    declared_length,
    discard_body,
    read_body,
)

DISCARD_SECONDS = 10.0
DISCARD_SILENCE_SECONDS = 1.0
EMPTY_STATUSES = frozenset({204, 304})


class Receiver:
    """Receives webhooks at `POST /{source}`, with and without a trailing slash; mount it where you like.

        Starlette(routes=[Mount("/webhooks", Receiver(inbox, engine))])
        fastapi_app.mount("/webhooks", Receiver(inbox, engine))

    It is a plain ASGI application: uvicorn serves it on its own as well. HEAD, GET and OPTIONS are answered
    with 200, because providers probe a URL before they register it. Nothing is ever redirected.

    Args:
        inbox: the sources that may send.
        engine: where the ledger is; an Engine or an AsyncEngine for PostgreSQL.
        settings: bounds, such as the largest body (25 MiB); the defaults suit most.
        body_timeout: seconds in which a whole body must have come, else 408.

    Raises:
        SetupError: for an engine of another driver, or an inbox without sources.
    """

    def __init__(
        self,
        inbox: Inbox,
        engine: Engine | AsyncEngine,
        settings: IntakeSettings | None = None,
        *,
        body_timeout: float = 30.0,
    ) -> None:
        self.intake = Intake(inbox, engine, settings)
        self.body_timeout = body_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if scope["type"] == "http":
            await self._respond(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def aclose(self) -> None:
        """Let the commits that are under way end. A receiver that is served on its own does so by itself; for
        a mounted one, an application may call it in its lifespan."""
        await self.intake.aclose()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        source = source_name(scope)
        if scope["method"] != "POST":
            response = await self.intake.receive(as_request(scope, source, b""))
            await self._answer_early(response, scope, receive, send)
            return
        if (early := self.intake.admits(source)) is not None:
            await self._answer_early(early, scope, receive, send)
            return
        try:
            body = await read_body(scope, receive, limit=self.intake.max_body_bytes, timeout=self.body_timeout)
        except ClientGone as error:
            self.intake.answer(error, source=source)  # for its log line: nobody is there to read an answer
        except HookledgerError as error:
            told = self._told(error, source, as_request(scope, source, b""))
            await self._answer_early(told, scope, receive, send)
        else:
            response = await self.intake.receive(as_request(scope, source, body))
            if response.status == 401 and not body and declared_length(scope) is None:
                # An empty chunked body is what a middleware leaves behind that has read the whole.
                response = self._told(NotUnderstood(PERHAPS_CONSUMED), source)
            await answer(response, send)

    def _told(self, error: HookledgerError, source: str, head: Request | None = None) -> Response:
        # What went wrong with the body is no secret, and often it is the application's doing.
        return replace(self.intake.answer(error, source=source, head=head), body=str(error).encode())

    async def _answer_early(self, response: Response, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer at once, and let the client finish what it is sending."""
        names = [name for name, _ in scope["headers"]]
        if declared_length(scope) == 0 or b"expect" in names:
            await answer(response, send)
            return
        # Past a limit the rest may be endless, so the connection is not used again.
        closing = response.status in (408, 413)
        await answer(response, send, closing=closing, finish=False)
        await discard_body(receive, seconds=DISCARD_SECONDS, silence=DISCARD_SILENCE_SECONDS)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def source_name(scope: Scope) -> str:
    """The last part of the path below the mount point; empty if there is none."""
    path: str = scope["path"]
    mounted_at: str = scope.get("root_path", "")
    # Since Starlette 0.33 the path is the whole one, as ASGI says; a server's own root_path may be left out.
    if mounted_at and (path == mounted_at or path.startswith(mounted_at.rstrip("/") + "/")):
        path = path[len(mounted_at) :]
    return path.strip("/").rpartition("/")[2]


def as_request(scope: Scope, source: str, body: bytes) -> Request:
    """The core's request for a scope of ASGI."""
    headers = Headers.from_wire(scope["headers"])
    query = scope.get("query_string", b"").decode("latin-1")
    raw_path = scope.get("raw_path")
    path = raw_path.decode("latin-1") if raw_path else quote(scope["path"])
    url = f"{scope.get('scheme', 'http')}://{headers.get('host', '')}{path}{'?' if query else ''}{query}"
    return Request(source, scope["method"], headers, body, url, query)


async def answer(response: Response, send: Send, *, closing: bool = False, finish: bool = True) -> None:
    """Send a response exactly as the core gives it."""
    # A list of its own each time: middleware appends to it.
    headers = list(on_the_wire(response))
    if closing:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": not finish})


@lru_cache(maxsize=64)
def on_the_wire(response: Response) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of a response, as ASGI wants them; the same few answers are given again and again."""
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
    if response.status not in EMPTY_STATUSES:
        headers.append((b"content-length", str(len(response.body)).encode()))
    return tuple(headers)
