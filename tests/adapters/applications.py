"""The applications that are served: the receiver as users mount it, and in front of it what users put there.

The header X-In-Front of a request names what is to be done to its body before the receiver gets it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pkgutil import resolve_name
from typing import Any

import fastapi
import flask
from flask_wtf import CSRFProtect
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import hookledger_starlette.body
from hookledger import Delivery, Inbox
from hookledger.engine import create
from hookledger.receive import IntakeSettings
from hookledger.worker import WorkerSettings
from hookledger_flask import receiver, run_worker
from hookledger_starlette import Receiver, worker_lifespan
from tests.adapters.hub import hub
from tests.adapters.keyed import keyed


@dataclass(frozen=True)
class Options:
    """What a test may choose of the served application.

    Args:
        database_url: where the ledger is.
        max_body_bytes: the receiver's; None for its default.
        answer_probes: the receiver's.
        answer_within: the receiver's, in seconds. A busy machine may take longer for a commit of 25 MiB than a receiver
            gives it by default.
        cut_after: the receiver's, in seconds.
        body_timeout: the receiver's, in seconds; ASGI only.
        csrf: "before" or "after": when Flask-WTF's CSRFProtect is set up; "nested": before, in another blueprint.
        max_content_length: Flask's setting, in bytes.
        worker: whether a worker runs in the same process.
        handler_runs: the statement that its handler runs.
        key_server: host of a key server and the file of its certificate authority, for the source `keyed`.
        more: `module:function` that makes further sources.
    """

    database_url: str
    max_body_bytes: int | None = None
    answer_probes: bool = True
    answer_within: float = 60.0
    cut_after: float = IntakeSettings().cut_after
    body_timeout: float = 30.0
    csrf: str | None = None
    max_content_length: int | None = None
    worker: bool = False
    handler_runs: str = "SELECT 1"
    key_server: tuple[str, str] | None = None
    more: str | None = None

    @property
    def settings(self) -> IntakeSettings:
        settings = IntakeSettings(
            answer_within=self.answer_within, cut_after=self.cut_after, answer_probes=self.answer_probes
        )
        return settings if self.max_body_bytes is None else replace(settings, max_body_bytes=self.max_body_bytes)


SETTINGS = WorkerSettings(slots=2, grace=5)
FIRST_MESSAGE_SECONDS = 0.5
"""In place of the receiver's, so that no test waits for long."""


def inbox(options: Options, *, asynchronous: bool = False) -> Inbox:
    sources = [hub(), *([keyed(*options.key_server)] if options.key_server else [])]
    if options.more is not None:
        sources += resolve_name(options.more)()
    inbox = Inbox(*sources)
    if asynchronous:

        @inbox.accumulate("hub", name="work")
        async def work_asynchronously(delivery: Delivery, tx: AsyncConnection) -> None:
            await tx.execute(text(options.handler_runs))
    else:

        @inbox.accumulate("hub", name="work")
        def work(delivery: Delivery, tx: Connection) -> None:
            tx.execute(text(options.handler_runs))

    return inbox


def receiver_alone(options: Options, *, asynchronous: bool = False) -> Receiver:
    """The receiver as an application of its own."""
    hookledger_starlette.body.FIRST_MESSAGE_SECONDS = FIRST_MESSAGE_SECONDS
    engine = create(options.database_url, asynchronous=asynchronous)
    return Receiver(inbox(options), engine, options.settings, body_timeout=options.body_timeout)


def starlette_application(options: Options, *, asynchronous: bool = False) -> Starlette:
    receiver = receiver_alone(options, asynchronous=asynchronous)
    lifespan = None
    if options.worker:
        engine = create(options.database_url, asynchronous=asynchronous)
        lifespan = worker_lifespan(inbox(options, asynchronous=asynchronous), engine, SETTINGS)
    return Starlette(routes=[Mount("/webhooks", receiver)], middleware=[Middleware(InFrontOfAsgi)], lifespan=lifespan)


def fastapi_application(options: Options) -> fastapi.FastAPI:
    @asynccontextmanager
    async def lifespan(application: fastapi.FastAPI) -> AsyncIterator[None]:
        if not options.worker:
            yield
            return
        async with worker_lifespan(inbox(options), create(options.database_url), SETTINGS)(application):
            yield

    application = fastapi.FastAPI(middleware=[Middleware(InFrontOfAsgi)], lifespan=lifespan)
    application.mount("/webhooks", receiver_alone(options))
    return application


def flask_application(options: Options) -> Any:
    application = flask.Flask("application")
    application.config["SECRET_KEY"] = "for CSRF"
    application.config["MAX_CONTENT_LENGTH"] = options.max_content_length
    protection = CSRFProtect()
    if options.csrf in ("before", "nested"):
        protection.init_app(application)
    application.before_request(in_front_of_flask)
    blueprint = receiver(inbox(options), create(options.database_url), options.settings)
    if options.worker:
        run_worker(inbox(options), create(options.database_url), SETTINGS)
    if options.csrf == "nested":
        outer = flask.Blueprint("outer", __name__)
        outer.register_blueprint(blueprint, url_prefix="/webhooks")
        application.register_blueprint(outer)
    else:
        application.register_blueprint(blueprint, url_prefix="/webhooks")
    if options.csrf == "after":
        protection.init_app(application)
    application.add_url_rule("/elsewhere", view_func=lambda: "reached", methods=["POST"], endpoint="elsewhere")
    application.wsgi_app = InFrontOfWsgi(application.wsgi_app)  # type: ignore[method-assign]
    return application


async def _read_before(request: Request, call_next: RequestResponseEndpoint) -> Response:
    await request.body()
    return await call_next(request)


async def _read_before_and_after(request: Request, call_next: RequestResponseEndpoint) -> Response:
    before = await request.body()
    response = await call_next(request)
    assert await request.body() == before
    return response


async def _stream_before(request: Request, call_next: RequestResponseEndpoint) -> Response:
    async for _ in request.stream():
        pass
    return await call_next(request)


def _as_it_is(receive: Receive) -> Receive:
    return receive


def _wrapped(receive: Receive) -> Receive:
    async def counted() -> Message:
        return await receive()

    return counted


def _closed(receive: Receive) -> Receive:
    async def closed() -> Message:
        return {"type": "http.disconnect"}

    return closed


class _Drain:
    """Reads the body, or its first part, and hands on what `after` makes of `receive`."""

    def __init__(self, app: ASGIApp, after: Callable[[Receive], Receive] = _as_it_is, whole: bool = True) -> None:
        self.app = app
        self.after = after
        self.whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body", False) and self.whole:
            pass
        await self.app(scope, self.after(receive), send)


class _Wrap:
    """Hands on a `receive` of its own that reads nothing in advance, as tracing does."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, _wrapped(receive), send)


IN_FRONT_OF_ASGI: dict[str, Callable[[ASGIApp], ASGIApp]] = {
    "": lambda app: app,
    "read_before": partial(BaseHTTPMiddleware, dispatch=_read_before),
    "read_before_and_after": partial(BaseHTTPMiddleware, dispatch=_read_before_and_after),
    "stream_before": partial(BaseHTTPMiddleware, dispatch=_stream_before),
    "drain": _Drain,
    "drain_wrapped": partial(_Drain, after=_wrapped),
    "drain_closed": partial(_Drain, after=_closed),
    "drain_first": partial(_Drain, whole=False),
    "wrap": _Wrap,
}


class InFrontOfAsgi:
    """Puts the middleware that the request names between itself and the application."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = dict(scope.get("headers", ())).get(b"x-in-front", b"").decode()
        await IN_FRONT_OF_ASGI[name](self.app)(scope, receive, send)


def _get_data() -> None:
    flask.request.get_data()


def _get_data_uncached() -> None:
    flask.request.get_data(cache=False)


def _form() -> None:
    assert flask.request.form is not None


def _stream() -> None:
    flask.request.stream.read()


def _stream_first() -> None:
    flask.request.stream.read(2)


IN_FRONT_OF_FLASK: dict[str, Callable[[], None]] = {
    "get_data": _get_data,
    "get_data_uncached": _get_data_uncached,
    "form": _form,
    "stream": _stream,
    "stream_first": _stream_first,
}


def in_front_of_flask() -> None:
    """The before_request function that the request names."""
    name = flask.request.headers.get("x-in-front")
    if name in IN_FRONT_OF_FLASK:
        IN_FRONT_OF_FLASK[name]()


class InFrontOfWsgi:
    """Reads the body before the application gets it, if the request says so."""

    def __init__(self, application: Any) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ.get("HTTP_X_IN_FRONT") == "wsgi_drain":
            while environ["wsgi.input"].read(65536):
                pass
        answer: Iterable[bytes] = self.application(environ, start_response)
        return answer
