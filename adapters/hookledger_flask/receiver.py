"""The receiver as a Flask blueprint: reads the raw body, asks the core, writes its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import flask
from flask import Blueprint, current_app
from sqlalchemy import Engine

from hookledger.errors import ClientGone, HookledgerError, NotUnderstood, SetupError
from hookledger.http import Headers, Request, Response
from hookledger.inbox import Inbox
from hookledger.receive import Intake, IntakeSettings
from hookledger_flask.body import PERHAPS_CONSUMED, discarding, has_body, input_of, is_chunked, read_body

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
DISCARD_SECONDS = 10.0


def receiver(
    inbox: Inbox,
    engine: Engine,
    settings: IntakeSettings | None = None,
    *,
    name: str = "hookledger",
) -> Blueprint:
    """A blueprint that receives webhooks at `POST /{source}`, with and without a trailing slash.

        app.register_blueprint(receiver(inbox, engine), url_prefix="/webhooks")

    HEAD, GET and OPTIONS are answered with 200, because providers probe a URL before they register it. Nothing
    is ever redirected. Where Flask-WTF's CSRFProtect guards the application, the blueprint exempts itself from
    it: what it takes in is verified by signature. The application's MAX_CONTENT_LENGTH does not hold here.

    WSGI joins repeated headers with commas and does not keep the order of all headers; that is how they are
    stored. How long a sender may take is the WSGI server's to bound.

    Args:
        inbox: the sources that may send.
        engine: where the ledger is; an Engine for PostgreSQL.
        settings: bounds, such as the largest body (25 MiB); the defaults suit most.
        name: the blueprint's, for an application that has several receivers.

    Raises:
        SetupError: for an asynchronous engine, one of another driver, or an inbox without sources.
    """
    if not isinstance(engine, Engine):
        raise SetupError("the Flask receiver needs an Engine, made by sqlalchemy.create_engine")
    intake = Intake(inbox, engine, settings)
    blueprint = Blueprint(name, __name__, url_prefix="/webhooks")

    def receive(source: str) -> flask.Response:
        return _respond(intake, source, flask.request)

    def exempt_from_csrf(endpoint: str | None, values: dict[str, Any] | None) -> None:
        # Asked at each request of ours, before any before_request function runs: so it does not matter
        # whether CSRFProtect was set up before or after the blueprint.
        guard = current_app.extensions.get("csrf")
        if any(cls.__module__.startswith("flask_wtf") for cls in type(guard).__mro__):
            guard.exempt(receive)  # type: ignore[union-attr]

    blueprint.url_value_preprocessor(exempt_from_csrf)
    blueprint.add_url_rule(
        "/<source>",
        view_func=receive,
        methods=METHODS,
        strict_slashes=False,
        merge_slashes=False,
    )
    return blueprint


def _respond(intake: Intake, source: str, request: flask.Request) -> flask.Response:
    if request.method != "POST":
        return _answer_early(intake.receive_blocking(as_request(request, source, b"")), request)
    if (early := intake.admits(source)) is not None:
        return _answer_early(early, request)
    try:
        body = read_body(request, intake.max_body_bytes)
    except (ClientGone, NotUnderstood) as error:
        return answer(_told(intake, error, source))
    except HookledgerError as error:
        return _answer_early(_told(intake, error, source, as_request(request, source, b"")), request)
    response = intake.receive_blocking(as_request(request, source, body))
    if response.status == 401 and not body and is_chunked(request):
        # An empty chunked body is what a function leaves behind that has read the whole.
        response = _told(intake, NotUnderstood(PERHAPS_CONSUMED), source)
    return answer(response)


def _told(intake: Intake, error: HookledgerError, source: str, head: Request | None = None) -> Response:
    # What went wrong with the body is no secret, and often it is the application's doing.
    return replace(intake.answer(error, source=source, head=head), body=str(error).encode())


def as_request(request: flask.Request, source: str, body: bytes) -> Request:
    """The core's request for one of Flask."""
    environ = request.environ
    query = environ.get("QUERY_STRING", "")
    path = quote(environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", ""), encoding="latin-1")
    url = f"{request.scheme}://{environ.get('HTTP_HOST', '')}{path}{'?' if query else ''}{query}"
    return Request(source, request.method, Headers(request.headers), body, url, query)


def answer(response: Response) -> flask.Response:
    """Flask's response for one of the core, exactly as the core gives it."""
    made = flask.Response(response.body, status=response.status, headers=list(response.headers))
    if not any(name.lower() == "content-type" for name, _ in response.headers):
        made.headers.remove("content-type")  # Flask adds text/html
    return made


def _answer_early(response: Response, request: flask.Request) -> flask.Response:
    made = answer(response)
    if not has_body(request):
        return made
    made.content_length = len(response.body)
    made.response = discarding(response.body, input_of(request), DISCARD_SECONDS)
    return made
