"""Braintree: notifications of a gateway. https://developer.paypal.com/braintree/docs/guides/webhooks/parse"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from base64 import b64encode
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

from hookledger.delivery import Delivery, Event
from hookledger.errors import Cause, NotVerified, SetupError, UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources.describe import Family, Option, Provider, Reads, Settings
from hookledger.sources.handshakes import braintree_challenge
from hookledger.sources.reading import event_type_of, read_form
from hookledger.sources.source import Verified
from hookledger.sources.unverified import malformed, unverified_form
from hookledger.storable import identifier

SIGNATURE, PAYLOAD = "bt_signature", "bt_payload"
MOST_PAIRS = 20
DEEPEST = 50
CHALLENGE = re.compile(r"[a-f0-9]{20,32}\n?")
_PAYLOAD = re.compile(r"[A-Za-z0-9+=/\n]+")
FORM = ("Content-Type", "application/x-www-form-urlencoded")


class BraintreeVerifier:
    """HMAC-SHA1 over the field `bt_payload`, with SHA-1 of the private key as the key, in the field `bt_signature`.

    https://github.com/braintree/braintree_python/blob/master/braintree/webhook_notification_gateway.py

    Args:
        keys: private keys.
        settings: with `public_key`.
    """

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        self.keys = keys
        self._public_key = str(settings.options["public_key"])
        if not re.fullmatch(r"[A-Za-z0-9_]{1,100}", self._public_key):
            raise SetupError(
                "public_key= must be the public key as Braintree shows it: letters, digits and underscores"
            )

    def verify(self, request: Request, now: float) -> Verified:
        """Return if one of the private keys signed the payload.

        Raises:
            NotVerified: with the reason.
        """
        fields = unverified_form(request.body)
        signatures, payloads = fields.get(SIGNATURE, []), fields.get(PAYLOAD, [])
        if not signatures or not payloads:
            raise NotVerified(f"the fields {SIGNATURE} and {PAYLOAD} of the form are missing", Cause.SIGNATURE_MISSING)
        if len(signatures) > 1 or len(payloads) > 1 or not _PAYLOAD.fullmatch(payloads[0]):
            raise malformed(f"the field {PAYLOAD} of the form is no base64, or comes twice")
        if CHALLENGE.fullmatch(payloads[0]):
            # Anybody can have a challenge signed with the same key.
            raise malformed(f"the field {PAYLOAD} of the form is no notification, but could be a challenge")
        pairs = [pair.partition("|")[2].encode("utf-8", "surrogatepass") for pair in signatures[0].split("&")]
        payload = payloads[0].encode()
        for number, key in enumerate(self.keys):
            # Its last line end may have been lost on the way.
            expected = [_signature(key, payload), _signature(key, payload + b"\n")]
            if any(hmac.compare_digest(each, pair) for pair in pairs[:MOST_PAIRS] for each in expected):
                return Verified(number)
        raise NotVerified(
            f"no signature in {SIGNATURE} matches: the private key is not that of the sender, or the payload was "
            "changed",
            Cause.NO_MATCH,
        )

    def sign_body(self, body: bytes, now: float) -> bytes:
        """The form with a signature.

        Args:
            body: a form with `bt_payload`, or the XML of a notification.
            now: not used.

        Raises:
            UnreadableBody: if it is neither.
        """
        fields = read_form(body)
        payload = fields[PAYLOAD][0] if PAYLOAD in fields else f"{b64encode(body).decode()}\n"
        if not _PAYLOAD.fullmatch(payload):
            raise UnreadableBody("the body is no notification of Braintree")
        signature = _signature(self.keys[0], payload.encode()).decode()
        return urlencode({SIGNATURE: f"{self._public_key}|{signature}", PAYLOAD: payload}).encode()

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """The headers of a notification: nothing in them is signed."""
        return Headers([FORM])


def _signature(key: bytes, payload: bytes) -> bytes:
    return hmac.new(hashlib.sha1(key).digest(), payload, hashlib.sha1).hexdigest().encode()  # noqa: S324


def notification(body: bytes) -> dict[str, Any]:
    """The notification in a form, as its XML says it: names with underscores, values by their `type`.

    Raises:
        UnreadableBody: if it cannot be read.
    """
    payload = read_form(body).get(PAYLOAD, [""])[0]
    try:
        document = base64.b64decode(payload.encode("utf-8", "surrogateescape"))
    except (binascii.Error, ValueError):
        raise UnreadableBody(f"the field {PAYLOAD} is no base64") from None
    if b"<!" in document:
        raise UnreadableBody("the XML of the notification has declarations, which Braintree's has not")
    try:
        root = ElementTree.fromstring(document)  # noqa: S314
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise UnreadableBody(f"the notification is no XML: {str(error)[:200]}") from None
    found = _value(root, DEEPEST)
    if not isinstance(found, dict):
        raise UnreadableBody("the notification is empty")
    return found


def _value(element: ElementTree.Element, deeper: int) -> Any:
    if deeper == 0:
        raise UnreadableBody("the notification is nested too deeply to be read")
    kind = element.get("type")
    if element.get("nil") == "true":
        return None
    if kind in ("array", "collection"):
        return [_value(each, deeper - 1) for each in element]
    if len(element):
        return {each.tag.replace("-", "_"): _value(each, deeper - 1) for each in element}
    text = (element.text or "").strip()
    if kind == "boolean":
        return text in ("true", "1")
    if kind == "integer" and re.fullmatch(r"-?[0-9]{1,40}", text):
        return int(text)
    return text


def _subject(document: dict[str, Any]) -> dict[str, Any]:
    """What a notification is about: the one object in its subject."""
    subject = document.get("subject")
    inner = next(iter(subject.values()), None) if isinstance(subject, dict) else None
    return inner if isinstance(inner, dict) else {}


def _read(request: Request) -> Sequence[Event]:
    try:
        document = notification(request.body)
    except UnreadableBody as error:
        return (Event(None, "", unreadable=str(error)),)
    kind, at = document.get("kind"), document.get("timestamp")
    resource = identifier(_subject(document).get("id"))
    known = isinstance(kind, str) and isinstance(at, str) and at and resource is not None
    return (
        Event(
            identifier(f"{kind}/{resource}/{at}") if known else None,
            event_type_of(kind),
            resource,
            at if isinstance(at, str) else None,
        ),
    )


def _document(delivery: Delivery) -> dict[str, Any]:
    return notification(delivery.body)


braintree = Provider(
    name="braintree",
    title="Braintree",
    documentation="https://developer.paypal.com/braintree/docs/guides/webhooks/parse",
    family=Family.IN_BODY,
    verifier=BraintreeVerifier,
    covers_body=False,
    options=(Option("public_key", "the public key of the gateway's API", required=True),),
    format="form",
    reads=Reads(_read, _document),
    event_id="kind / subject.id / timestamp",
    event_type="kind",
    resource="subject.id",
    version="timestamp",
    probe=braintree_challenge,
    deleted=(),
    survives="""Notifications have no id. Their kind, the id of their subject and the timestamp, which is that of the
    notification and not of the attempt, are signed and tell them apart; where the subject has no id, the bytes do.""",
    cautions="""Only the field bt_payload is signed: whoever sees one request can send it again in another form. Its
    time is not checked, as it is sent again for a day.""",
    verified_by=("braintree_ruby V38 (the challenge)",),
    unconfirmed=("Braintree waits 30 seconds, and tries again every hour for 24 hours.",),
)
