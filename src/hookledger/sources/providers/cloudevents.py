"""CloudEvents over HTTP, in all three modes. https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md"""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import unquote

from hookledger.delivery import Delivery, Event
from hookledger.errors import UnreadableBody
from hookledger.http import Headers, Request, Response
from hookledger.sources.describe import Family, Provider, Reads, bearer, joined, shared_token
from hookledger.sources.event_reader import EventReader
from hookledger.sources.handshakes import cloudevents_options
from hookledger.sources.items import ItemPaths
from hookledger.sources.reading import read_json

STRUCTURED = "application/cloudevents"
BATCH = "application/cloudevents-batch"
ATTRIBUTE = "ce-"

FIELDS: dict[str, Any] = {
    "event_id": joined("source", "id"),
    "event_type": "type",
    "resource": joined("source", "subject"),
    "version": "time",
}
READER = EventReader("json", items="", **FIELDS)


def _documents(body: bytes, headers: Headers) -> list[Any]:
    """The events of a request in the JSON format, whichever mode they came in.

    https://github.com/cloudevents/spec/blob/main/cloudevents/bindings/http-protocol-binding.md#3-http-message-mapping
    """
    kind = (headers.get("content-type") or "").partition(";")[0].strip().lower()
    if kind in (STRUCTURED, f"{STRUCTURED}+json"):
        document = read_json(body)
        if not isinstance(document, dict):
            raise UnreadableBody("the body is JSON, but not the object that an event is")
        return [document]
    if kind in (BATCH, f"{BATCH}+json"):
        document = read_json(body)
        if not isinstance(document, list):
            raise UnreadableBody("the body is JSON, but not the list that a batch is")
        return document
    if kind.startswith(STRUCTURED):
        raise UnreadableBody(f"the event is in the format {kind[:100]}, and only that of JSON is read")
    attributes = {name.lower()[len(ATTRIBUTE) :]: value for name, value in headers if _is_attribute(name)}
    if not attributes:
        raise UnreadableBody("the request is no event: it has neither headers ce-* nor a content type of CloudEvents")
    document = {name: unquote(value) for name, value in attributes.items()}
    if kind:
        document["datacontenttype"] = headers.get("content-type")
    return [document | _data(kind, body)]


def _is_attribute(name: str) -> bool:
    return name.lower().startswith(ATTRIBUTE)


def _data(kind: str, body: bytes) -> dict[str, Any]:
    """The data of a binary event; without a content type it is JSON, as in the JSON format."""
    if not body:
        return {}
    if not kind or kind.endswith(("/json", "+json")):
        return {"data": read_json(body)}
    if kind.startswith("text/"):
        try:
            return {"data": body.decode()}
        except UnicodeDecodeError:
            pass
    return {"data_base64": base64.b64encode(body).decode()}


def _read(request: Request) -> list[Event]:
    events = json.dumps(_documents(request.body, request.headers)).encode()
    return list(READER.read(Request(request.source, request.method, request.headers, events)))


def _document(delivery: Delivery) -> Any:
    events = json.dumps(_documents(delivery.body, delivery.headers)).encode()
    return ItemPaths("").document(events, delivery.position)


cloudevents = Provider(
    name="cloudevents",
    title="CloudEvents",
    documentation="https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md",
    family=Family.TOKEN,
    schemes=(bearer(), shared_token("query:access_token")),
    items="",
    reads=Reads(_read, _document),
    **FIELDS,
    deleted=("*.deleted", "*.delete"),
    probe=cloudevents_options,
    accepted=Response(202),
    survives="""The specification says that source and id together name an event, and that a sender that tries again
    keeps both.""",
    cautions="""Nothing is signed: whoever sees one request can send others. A token in the query stands in the logs of
    every proxy: prefer the header. Events of all three modes are delivered in the JSON format; other formats become
    dead letters.""",
    unconfirmed=("That a sender gives `time` such that it orders the states of a subject.",),
)
