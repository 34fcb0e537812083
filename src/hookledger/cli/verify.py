"""`hookledger verify`: whether a captured request verifies and, if not, why."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from hookledger.cli.captured import STANDARD_INPUT, read_file, read_headers
from hookledger.cli.errors import FAILED, WrongUse, one_line
from hookledger.cli.given import secrets_given, settings_given, source_given
from hookledger.cli.load import load_provider
from hookledger.cli.options import Debug, Json
from hookledger.cli.output import print_json
from hookledger.errors import Cause, Refused

if TYPE_CHECKING:
    from hookledger.http import Request
    from hookledger.sources.diagnosis import Diagnosis
    from hookledger.sources.source import Source

LATEST = 253_402_300_800.0
"""Unix time in seconds from which on no calendar has a year."""
_METHOD = re.compile(r"[A-Z]{1,20}")


def verify(
    provider: Annotated[
        str,
        typer.Argument(
            metavar="PROVIDER",
            help="The kind of sender; `hookledger sources` lists them. MODULE:NAME for a Provider of your own.",
        ),
    ],
    headers: Annotated[
        str,
        typer.Option(
            "--headers", metavar="FILE", help="The headers, as raw 'Name: value' lines; - reads standard input."
        ),
    ],
    body: Annotated[
        str, typer.Option("--body", metavar="FILE", help="The body, byte for byte; - reads standard input.")
    ],
    secret: Annotated[
        list[str] | None,
        typer.Option("--secret", metavar="SECRET", help="As the provider shows it; repeatable, the current one first."),
    ] = None,
    secret_env: Annotated[
        list[str] | None,
        typer.Option(
            "--secret-env", metavar="NAME", help="An environment variable that holds a further secret; repeatable."
        ),
    ] = None,
    secret_file: Annotated[
        list[str] | None,
        typer.Option("--secret-file", metavar="FILE", help="A file that holds a further secret; repeatable."),
    ] = None,
    at: Annotated[
        float | None,
        typer.Option("--at", metavar="UNIX_TIME", help="When the request came, in seconds since 1970; else now."),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", metavar="METHOD", help="Its HTTP method, POST if not told otherwise.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="Its public URL, with the query, exactly as the provider has it."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the provider's own; `hookledger sources PROVIDER` lists them; repeatable.",
        ),
    ] = None,
    setting_env: Annotated[
        list[str] | None,
        typer.Option(
            "--set-env", metavar="NAME=VARIABLE", help="The same with the value in an environment variable; repeatable."
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance", metavar="SECONDS", help="How far a signed time may be off; else the provider's."),
    ] = None,
    content_encoding: Annotated[
        str | None,
        typer.Option(
            "--content-encoding",
            metavar="RULE",
            help="What the signature of a compressed body covers: signed-compressed or signed-plain.",
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tell whether a captured request verifies and, if not, why.

    Nothing is sent, and no database is needed. No secret is ever printed.

    Exit status: 0 verified, 1 refused, 2 wrong use.

    Example: hookledger verify stripe --headers headers.txt --body body.json --secret-env STRIPE_WEBHOOK_SECRET
    """
    from hookledger.sources.catalogue import provider as find

    found = load_provider(provider) if ":" in provider else find(provider)
    if [headers, body, *(secret_file or [])].count(STANDARD_INPUT) > 1:
        raise WrongUse("standard input can be read once: give only one of the files as -")
    if at is not None and not 0 <= at < LATEST:
        raise WrongUse("--at must be a Unix time in seconds, before the year 10000")
    now = time.time() if at is None else at
    source = source_given(
        found,
        secrets_given(secret or [], secret_env or [], secret_file or []),
        url=url,
        settings=settings_given(found, setting or [], setting_env or []),
        tolerance=tolerance,
        content_encoding=content_encoding,
    )
    document = _examined(source, _request(source, headers, body, method, url), now)
    document["provider"] = found.name
    if at is None and document["cause"] == Cause.CLOCK.value:
        signed_at = now - document["details"]["clock_offset"]
        document["says"] += f"; give the time at which it came with --at, as --at {signed_at:.0f} for the signed time"
    if json:
        print_json(document)
    else:
        print(one_line(f"{'verified' if document['verified'] else 'refused'}: {document['says']}"), flush=True)
    if not document["verified"]:
        raise typer.Exit(FAILED)


def _request(source: Source, headers: str, body: str, method: str | None, url: str | None) -> Request:
    from hookledger.http import Request

    captured = read_headers(read_file(headers, "file of headers"), headers)
    spoken = (method or captured.method or "POST").upper()
    if not _METHOD.fullmatch(spoken):
        raise WrongUse("--method must be an HTTP method, such as POST")
    target = url or captured.target or ""
    try:
        query = urlsplit(target).query
    except ValueError:
        # It is not repeated, as some providers have the secret in it.
        raise WrongUse("the --url is no URL: give it as the provider has it") from None
    return Request(source.name, spoken, captured.headers, read_file(body, "file of the body"), target, query)


def _examined(source: Source, request: Request, now: float) -> dict[str, Any]:
    """What --json prints: the status is that of the receiver's answer."""
    from hookledger.sources.diagnosis import diagnose

    try:
        found = diagnose(source, request, now)
    except Refused as error:
        # Not for the signature: the keys cannot be had, or the body cannot be inflated.
        return _document(source, error.status, says=str(error), cause=_kebab(type(error).__name__))
    if found.verified:
        return _document(source, source.accepted.status, says=found.says, found=found)
    cause = None if found.cause is None else found.cause.value
    return _document(source, source.refused_status, says=found.says, cause=cause, found=found)


def _document(
    source: Source, status: int, *, says: str, cause: str | None = None, found: Diagnosis | None = None
) -> dict[str, Any]:
    return {
        "provider": source.provider,
        "verified": found is not None and found.verified,
        "status": status,
        "says": says,
        "cause": cause,
        "details": {} if found is None else dict(found.details),
        "secret": None if found is None or found.secret is None else found.secret + 1,
    }


def _kebab(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()
