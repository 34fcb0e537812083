"""Dropbox Sign, once HelloSign. https://developers.hellosign.com/docs/events/overview/"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from hookledger.errors import Cause, NotVerified, UnreadableBody
from hookledger.http import Headers, Request, Response
from hookledger.sources.describe import Family, Provider, Settings, joined
from hookledger.sources.event_reader import EventReader
from hookledger.sources.reading import in_document, read_json
from hookledger.sources.source import Verified
from hookledger.sources.unverified import malformed, unverified_object
from hookledger.sources.wrapped import in_part, reads_within

BOUNDARY = "hookledger-0f2b7c1d9e"
CONTENT_TYPE = ("Content-Type", f"multipart/form-data; boundary={BOUNDARY}")
document_of = in_part("json")


class DropboxSignVerifier:
    """HMAC-SHA256 over the time and the type of the event, in the event.

    https://developers.hellosign.com/docs/events/walkthrough/

    Args:
        keys: API keys.
        settings: none of its own.
    """

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        self.keys = keys

    def verify(self, request: Request, now: float) -> Verified:
        """Return if one of the API keys made the hash of the event.

        Raises:
            NotVerified: with the reason.
        """
        try:
            document = document_of(request.headers, request.body)
        except UnreadableBody as error:
            raise malformed(f"the hash is in the body, but {error}") from None
        event = in_document(unverified_object(document), ("event",))
        given, signed = in_document(event, ("event_hash",)), _signed(event)
        if not isinstance(given, str) or signed is None:
            raise NotVerified("the event has no event_hash, event_time or event_type", Cause.SIGNATURE_MISSING)
        offered = given.lower().encode("utf-8", "surrogatepass")
        for number, key in enumerate(self.keys):
            if hmac.compare_digest(_hash(key, signed), offered):
                return Verified(number)
        raise NotVerified("the event_hash does not match: the API key is not the primary one", Cause.NO_MATCH)

    def sign_body(self, body: bytes, now: float) -> bytes:
        """The event with its hash, as a multipart body.

        Raises:
            UnreadableBody: if it is no event.
        """
        document = read_json(body)
        event = in_document(document, ("event",))
        signed = _signed(event)
        if not isinstance(event, dict) or signed is None:
            raise UnreadableBody("the body is no event with event_time and event_type")
        event["event_hash"] = _hash(self.keys[0], signed).decode()
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="json"\r\n\r\n'.encode()
        return head + json.dumps(document).encode() + f"\r\n--{BOUNDARY}--\r\n".encode()

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """The headers of an event: nothing in them is signed."""
        return Headers([CONTENT_TYPE])


def _signed(event: Any) -> bytes | None:
    parts = [in_document(event, ("event_time",)), in_document(event, ("event_type",))]
    if not all(isinstance(part, str) and part for part in parts):
        return None
    return "".join(parts).encode("utf-8", "surrogatepass")


def _hash(key: bytes, signed: bytes) -> bytes:
    return hmac.digest(key, signed, hashlib.sha256).hex().encode()


EVENT_ID = joined(
    "event.event_type",
    "event.event_time",
    "signature_request.signature_request_id?",
    "template.template_id?",
    "event.event_metadata.related_signature_id?",
    "event.event_metadata.reported_for_app_id?",
)
RESOURCE = ("signature_request.signature_request_id", "template.template_id")

dropbox_sign = Provider(
    name="dropbox-sign",
    title="Dropbox Sign",
    documentation="https://developers.hellosign.com/docs/events/overview/",
    family=Family.IN_BODY,
    verifier=DropboxSignVerifier,
    covers_body=False,
    reads=reads_within(
        document_of,
        EventReader(
            "json",
            event_id=EVENT_ID,
            event_type="event.event_type",
            resource=RESOURCE,
            version="event.event_time",
            objects=True,
        ),
    ),
    event_id=EVENT_ID,
    event_type="event.event_type",
    resource=RESOURCE,
    version="event.event_time",
    deleted=(),
    accepted=Response(200, b"Hello API Event Received"),
    survives="""An event has no id. Its type, its time in seconds, and the request, template and signature that it is
    about tell events apart; event_hash is the same for all events of one type and second.""",
    cautions="""The hash covers the time and the type, and nothing else: whoever sees one request can send another
    event of that type. The key is the primary API key of the account. Read the signature request anew from the
    API.""",
    unconfirmed=("How often an event is sent again, and that it is then the same.",),
)
