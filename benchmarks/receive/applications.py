"""The receivers that are measured: ours in Starlette and Flask, and rivals as bare as they can be."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from benchmarks.database import dsn
from benchmarks.deliveries import SOURCE
from benchmarks.receive.requests import PATH, SECRET, SIGNATURE_HEADER, verifies
from benchmarks.receive.single import RECORD, RECORD_MANY, parameters, together
from hookledger import Inbox, hmac_source
from hookledger.engine import create

COMMITS = 3
"""That `Shared` has under way at a time, as ours has."""
POOL = 8
"""Connections of the rivals under asyncio."""
THREADS = 16
"""Of gunicorn; the threaded rival has a connection for each."""

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


def starlette_ours(engine: str) -> Any:
    """Our receiver in Starlette.

    Args:
        engine: "sync" or "async".
    """
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from hookledger_starlette import Receiver

    chosen = create(asynchronous=True) if engine == "async" else create()
    return Starlette(routes=[Mount("/webhooks", Receiver(_inbox(), chosen))])


def flask_ours() -> Any:
    """Our receiver in Flask."""
    from flask import Flask

    from hookledger_flask import receiver

    app = Flask("hookledger_benchmark")
    app.register_blueprint(receiver(_inbox(), create()), url_prefix="/webhooks")
    return app


class Bare:
    """Verifies and parses, and stores nothing: what the server and the protocol cost."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        body = await _read(receive)
        signature = next((value for name, value in scope["headers"] if name == b"x-signature"), b"")
        if verifies(signature, body):
            await self._record(scope, body)
            await _answer(send, 200)
        else:
            await _answer(send, 401)

    async def _record(self, scope: Scope, body: bytes) -> None:
        parameters(_decoded(scope), body)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})


class Single(Bare):
    """One statement and one commit a request.

    Args:
        autocommit: without BEGIN and COMMIT around the statement.
    """

    def __init__(self, *, autocommit: bool) -> None:
        from psycopg_pool import AsyncConnectionPool

        self._pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
            dsn(os.environ["DATABASE_URL"]),
            min_size=POOL,
            max_size=POOL,
            open=False,
            kwargs={"autocommit": autocommit},
        )

    async def _record(self, scope: Scope, body: bytes) -> None:
        connected: AbstractAsyncContextManager[Any] = self._pool.connection()
        async with connected as connection:
            await connection.execute(RECORD, parameters(_decoded(scope), body))

    async def _live(self, receive: Receive, send: Send) -> None:
        async with self._pool:
            await self._pool.wait()
            await super()._live(receive, send)


class Shared(Single):
    """What comes while a commit is under way goes together in the next one, in one statement; and nothing more."""

    def __init__(self) -> None:
        super().__init__(autocommit=True)
        self._waiting: list[tuple[dict[str, Any], asyncio.Future[None]]] = []
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def _record(self, scope: Scope, body: bytes) -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._waiting.append((parameters(_decoded(scope), body), done))
        if self._under_way < COMMITS:
            self._under_way += 1
            task = loop.create_task(self._commit())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await done

    async def _commit(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting, []
            connected: AbstractAsyncContextManager[Any] = self._pool.connection()
            async with connected as connection:
                await connection.execute(RECORD_MANY, together([row for row, _ in taken]))
            for _, done in taken:
                done.set_result(None)
        self._under_way -= 1


def starlette_bare() -> Any:
    """Starlette, with a receiver that verifies and parses, and stores nothing."""
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Starlette(routes=[Mount("/webhooks", Bare())])


def flask_single(*, autocommit: bool) -> Any:
    """Flask, with one statement and one commit a request.

    Args:
        autocommit: without BEGIN and COMMIT around the statement.
    """
    from flask import Flask, Response, request
    from psycopg_pool import ConnectionPool

    pool: ConnectionPool[Any] = ConnectionPool(
        dsn(os.environ["DATABASE_URL"]),
        min_size=THREADS,
        max_size=THREADS,
        open=True,
        kwargs={"autocommit": autocommit},
    )
    app = Flask("single_benchmark")

    @app.post(PATH)
    def receive() -> Response:
        body = request.get_data()
        if not verifies(request.headers.get(SIGNATURE_HEADER, ""), body):
            return Response(status=401)
        with pool.connection() as connection:
            connection.execute(RECORD, parameters(request.headers.items(), body))
        return Response(b"ok")

    return app


def flask_bare() -> Any:
    """Flask that verifies and parses, and stores nothing."""
    from flask import Flask, Response, request

    app = Flask("bare_benchmark")

    @app.post(PATH)
    def receive() -> Response:
        body = request.get_data()
        if not verifies(request.headers.get(SIGNATURE_HEADER, ""), body):
            return Response(status=401)
        parameters(request.headers.items(), body)
        return Response(b"ok")

    return app


def _inbox() -> Inbox:
    source = hmac_source(SOURCE, header=SIGNATURE_HEADER, secrets=SECRET, resource="data.object.id", version="version")
    return Inbox(source)


def _decoded(scope: Scope) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]


async def _read(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    return body


async def _answer(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
