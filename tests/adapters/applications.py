"""The applications that are served: the receiver as users mount it, and in front of it what users put there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import fastapi
import flask
from flask_wtf import CSRFProtect
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import hookledger_starlette.body
from hookledger.inbox import Inbox
from hookledger.receive import IntakeSettings
from hookledger_flask import receiver
from hookledger_starlette import Receiver
from tests.adapters.hub import hub


@dataclass(frozen=True)
class Options:
    """What a test may choose of the served application.

    Args:
        database_url: where the ledger is.
        max_body_bytes: the receiver's; None for its default.
        answer_probes: the receiver's.
        body_timeout: the receiver's, in seconds; ASGI only.
        first_message: replaces FIRST_MESSAGE_SECONDS; ASGI only.
        in_front: which of the middlewares or before_request functions of this module stands before the receiver.
        csrf: "before" or "after": when Flask-WTF's CSRFProtect is set up; "nested": before, in another blueprint.
        max_content_length: Flask's setting, in bytes.
    """

    database_url: str
    max_body_bytes: int | None = None
    answer_probes: bool = True
    body_timeout: float = 30.0
    first_message: float | None = None
    in_front: str | None = None
    csrf: str | None = None
    max_content_length: int | None = None

    @property
    def settings(self) -> IntakeSettings | None:
        if self.max_body_bytes is None and self.answer_probes:
            return None
        limit = self.max_body_bytes or IntakeSettings().max_body_bytes
        return IntakeSettings(max_body_bytes=limit, answer_probes=self.answer_probes)


def inbox() -> Inbox:
    return Inbox(hub())


def receiver_alone(options: Options, *, asynchronous: bool = False) -> Receiver:
    """The receiver as an application of its own."""
    if options.first_message is not None:
        hookledger_starlette.body.FIRST_MESSAGE_SECONDS = options.first_message
    make = create_async_engine if asynchronous else create_engine
    return Receiver(inbox(), make(options.database_url), options.settings, body_timeout=options.body_timeout)


def starlette_application(options: Options, *, asynchronous: bool = False) -> Starlette:
    receiver = receiver_alone(options, asynchronous=asynchronous)
    middleware = [IN_FRONT_OF_ASGI[options.in_front]] if options.in_front else []
    return Starlette(routes=[Mount("/webhooks", receiver)], middleware=middleware)


def fastapi_application(options: Options) -> fastapi.FastAPI:
    application = fastapi.FastAPI()
    application.mount("/webhooks", receiver_alone(options))
    return application


def flask_application(options: Options) -> Any:
    application = flask.Flask("application")
    application.config["SECRET_KEY"] = "for CSRF"
    application.config["MAX_CONTENT_LENGTH"] = options.max_content_length
    protection = CSRFProtect()
    if options.csrf in ("before", "nested"):
        protection.init_app(application)
    if options.in_front in IN_FRONT_OF_FLASK:
        application.before_request(IN_FRONT_OF_FLASK[options.in_front])
    blueprint = receiver(inbox(), create_engine(options.database_url), options.settings)
    if options.csrf == "nested":
        outer = flask.Blueprint("outer", __name__)
        outer.register_blueprint(blueprint, url_prefix="/webhooks")
        application.register_blueprint(outer)
    else:
        application.register_blueprint(blueprint, url_prefix="/webhooks")
    if options.csrf == "after":
        protection.init_app(application)
    application.add_url_rule("/elsewhere", view_func=lambda: "reached", methods=["POST"], endpoint="elsewhere")
    if options.in_front == "wsgi_drain":
        application.wsgi_app = _WsgiDrain(application.wsgi_app)  # type: ignore[method-assign]
    return application


async def _read_before(request: Request, call_next: RequestResponseEndpoint) -> Response:
    await request.body()
    return await call_next(request)


async def _read_after(request: Request, call_next: RequestResponseEndpoint) -> Response:
    response = await call_next(request)
    async for _ in request.stream():
        pass
    return response


async def _stream_before(request: Request, call_next: RequestResponseEndpoint) -> Response:
    async for _ in request.stream():
        pass
    return await call_next(request)


class _Drain:
    """Reads the body, or its first part, and hands on what `after` makes of `receive`."""

    def __init__(self, app: ASGIApp, whole: bool, after: Callable[[Receive], Receive]) -> None:
        self.app = app
        self.whole = whole
        self.after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            while (await receive()).get("more_body", False) and self.whole:
                pass
            receive = self.after(receive)
        await self.app(scope, receive, send)


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


def _drain(whole: bool, after: Callable[[Receive], Receive]) -> Middleware:
    return Middleware(_Drain, whole=whole, after=after)


class _Wrap:
    """Hands on a `receive` of its own that reads nothing in advance, as tracing does."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, _wrapped(receive), send)


def _dispatching(dispatch: Callable[[Request, RequestResponseEndpoint], Awaitable[Response]]) -> Middleware:
    return Middleware(BaseHTTPMiddleware, dispatch=dispatch)


IN_FRONT_OF_ASGI: dict[str, Middleware] = {
    "read_before": _dispatching(_read_before),
    "read_after": _dispatching(_read_after),
    "stream_before": _dispatching(_stream_before),
    "drain": _drain(True, _as_it_is),
    "drain_wrapped": _drain(True, _wrapped),
    "drain_closed": _drain(True, _closed),
    "drain_first": _drain(False, _as_it_is),
    "wrap": Middleware(_Wrap),
}


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


IN_FRONT_OF_FLASK: dict[str | None, Callable[[], None]] = {
    "get_data": _get_data,
    "get_data_uncached": _get_data_uncached,
    "form": _form,
    "stream": _stream,
    "stream_first": _stream_first,
}


class _WsgiDrain:
    def __init__(self, application: Any) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        while environ["wsgi.input"].read(65536):
            pass
        answer: Iterable[bytes] = self.application(environ, start_response)
        return answer
