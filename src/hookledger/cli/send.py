"""`hookledger send`: sign a file as the provider would, and post it to a receiver."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, urlsplit

import typer

from hookledger.cli.captured import read_file
from hookledger.cli.errors import FAILED, WrongUse, printable, say
from hookledger.cli.load import load_inbox
from hookledger.cli.options import Debug, InboxArgument, Json
from hookledger.cli.output import print_json
from hookledger.errors import HookledgerError, UnknownSource, UnreadableBody
from hookledger.http import Headers, Request

if TYPE_CHECKING:
    from hookledger.inbox import Inbox
    from hookledger.sources.source import Source

USUAL = (("Content-Type", "application/json"), ("User-Agent", "hookledger-send"))
"""Headers that are sent if the source's signature brings no others of these names."""
DEFAULT_URL = "http://127.0.0.1:8000/webhooks"

HINTS = {
    401: "the receiver refused the signature; its log says why: most likely it has another secret than this inbox",
    404: "the receiver has no such address or source; its log says which: compare --url, and its inbox with this one",
    503: "the receiver could not record it; its log says why",
}
"""What to do after an answer, whose body says nothing to senders."""


class NotSent(HookledgerError):
    """The request did not get an answer. Start the receiver, or give its address with --url."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the receiver said."""

    status: int
    reason: str
    location: str | None
    body: str


def send(
    inbox: InboxArgument,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The name of the source in that inbox.")],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The body to send, byte for byte; - reads standard input.")
    ],
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="The receiver; the source's name is added to it.")
    ] = DEFAULT_URL,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", metavar="'NAME: VALUE'", help="A header to add, or to send in place of ours; repeatable."
        ),
    ] = None,
    event_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="ID",
            help="The event's id where a header carries it. By default the same file and type have the same id.",
        ),
    ] = None,
    event_type: Annotated[
        str | None,
        typer.Option("--event", metavar="TYPE", help="The event's kind where a header carries it, as push for GitHub."),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="How long to wait for the answer.")
    ] = 30.0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Sign a file as the provider would, and post it.

    The secret is the one of the source in your inbox. Prints the status and the body of the answer; ends with 1
    if the status is not 2xx.

    Example: hookledger send hooks:inbox stripe event.json
    """
    loaded = load_inbox(inbox)
    sender = _source_of(loaded, source, inbox)
    request = signed_request(sender, read_file(file), event_id, event_type, header or [])
    _tell_what_headers_say(sender, request, event_id, event_type)
    address = _address(url, source)
    answer = _post(address, request, timeout)
    _print(answer, address, as_json=json)
    if not 200 <= answer.status < 300:
        if answer.location is not None:
            say(f"error: {address} redirects to {answer.location}; a provider would not follow, so give that as --url")
        elif answer.status in HINTS:
            say(f"error: {HINTS[answer.status]}")
        raise typer.Exit(FAILED)


def _tell_what_headers_say(source: Source, request: Request, event_id: str | None, event_type: str | None) -> None:
    """Tell which event type and id were made up: they are in no file, and a wrong guess finds no handler."""
    if event_id is not None and event_type is not None:
        return
    try:
        events = source.read(request)
    except HookledgerError:
        return
    if len(events) != 1:
        return
    values = [value for _, value in request.headers if value]
    (event,) = events
    told = []
    if event_type is None and any(
        event.event_type == each or event.event_type.startswith(f"{each}.") for each in values
    ):
        told.append(f"type {event.event_type} (guessed; --event tells another)")
    if event_id is None and event.event_id in values:
        told.append(f"id {event.event_id} (made from the file; --id tells another)")
    if told:
        say(printable(f"sent with {', '.join(told)}"))


def _source_of(inbox: Inbox, name: str, target: str) -> Source:
    try:
        return inbox.source(name)
    except UnknownSource:
        known = ", ".join(sorted(inbox.sources)) or "none"
        raise WrongUse(f"{target} has no source {name!r}; it has: {known}") from None


def signed_request(
    source: Source, body: bytes, event_id: str | None = None, event_type: str | None = None, own: Sequence[str] = ()
) -> Request:
    """What is posted: the body with what the provider puts into it, and its headers.

    Args:
        source: it is sent to.
        body: of the file.
        event_id, event_type: for sources that have them in headers.
        own: headers as `Name: value`, which replace all others of their names.

    Raises:
        WrongUse: if the source cannot be signed for, or takes no such id or type.
    """
    if source.sign is None:
        raise WrongUse(
            f"the source {source.name!r} cannot be signed for with its configured secret; "
            "let the provider send a test event"
        )
    wanted = {"identifier": event_id, "event_type": event_type}
    takes = inspect.signature(source.sign).parameters
    chosen = {name: value for name, value in wanted.items() if value is not None and name in takes}
    try:
        request = source.signed(body, time.time(), **chosen)
    except UnreadableBody as error:
        raise WrongUse(f"the file cannot be signed as {source.provider} does: {error}") from error
    for option, value in (("--id", event_id), ("--event", event_type)):
        if value is not None and value not in [sent for _, sent in request.headers]:
            raise WrongUse(
                f"{option} changes nothing for the source {source.name!r}: it is in the body, so edit the file"
            )
    headers = [_split(text) for text in own]
    for more in (request.headers, USUAL):
        replaced = {name.lower() for name, _ in headers}
        headers = [*(pair for pair in more if pair[0].lower() not in replaced), *headers]
    return replace(request, headers=Headers(headers))


def _address(url: str, source: str) -> str:
    """Where it is posted: the source's name stands behind the path."""
    path, mark, query = url.partition("?")
    return f"{path.rstrip('/')}/{quote(source, safe='')}{mark}{query}"


def _split(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or "\n" in text or "\r" in text:
        raise WrongUse(f"the header {text!r} is none: write it as 'Name: value'")
    return name.strip(), value.strip()


def _post(address: str, request: Request, timeout: float) -> Answer:
    import http.client

    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        raise WrongUse(f"{address} has a port that is none: correct --url") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongUse(f"{address} is no http or https address: correct --url")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    try:
        connection = kind(parts.hostname, port, timeout=timeout)
        try:
            # What the source puts there may be its secret, so it is no part of the address that is shown.
            query = "&".join(each for each in (parts.query, request.query) if each)
            target = f"{parts.path}?{query}" if query else parts.path
            connection.putrequest("POST", target, skip_accept_encoding=True)
            for name, value in request.headers:
                connection.putheader(name, value.encode("latin-1", "replace"))
            connection.putheader("Content-Length", str(len(request.body)))
            connection.endheaders(request.body)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
            return Answer(answer.status, answer.reason, answer.getheader("Location"), text)
        finally:
            connection.close()
    except ConnectionRefusedError as error:
        raise NotSent(
            f"nothing listens at {parts.scheme}://{parts.netloc}: start the receiver "
            "(for example with `hookledger dev`), or give its address with --url"
        ) from error
    except TimeoutError as error:
        raise NotSent(f"{address} did not answer within {timeout:g} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise NotSent(f"{address} could not be reached: {type(error).__name__}: {error}") from error


def _print(answer: Answer, address: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"url": address, "status": answer.status, "reason": answer.reason, "body": answer.body})
        return
    print(printable(f"{answer.status} {answer.reason}"))
    for line in answer.body.splitlines():
        print(printable(line))
