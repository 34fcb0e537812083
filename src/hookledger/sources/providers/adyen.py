"""Adyen: standard notifications of payments. https://docs.adyen.com/development-resources/webhooks/"""

from __future__ import annotations

import hmac
import json
from base64 import b64encode
from typing import Any

from hookledger.errors import Cause, NotVerified, UnreadableBody
from hookledger.http import Headers, Request, Response
from hookledger.sources.describe import Family, OfItem, Provider, Settings, joined
from hookledger.sources.items import ItemPaths
from hookledger.sources.reading import in_document, read_json
from hookledger.sources.source import Verified
from hookledger.sources.unverified import unverified_object

LIST, ITEM = "notificationItems", "NotificationRequestItem"
SIGNATURE = ("additionalData", "hmacSignature")
FIELDS = (
    ("pspReference",),
    ("originalReference",),
    ("merchantAccountCode",),
    ("merchantReference",),
    ("amount", "value"),
    ("amount", "currency"),
    ("eventCode",),
    ("success",),
)
FREE_TEXT = ("merchantReference",)
ITEMS = ItemPaths(LIST)


class AdyenVerifier:
    """HMAC-SHA256 over eight fields of each notification, in the notification.

    https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures/

    Args:
        keys: HMAC keys.
        settings: none of its own.
    """

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        self.keys = keys

    def verify(self, request: Request, now: float) -> Verified:
        """Return if every notification of the request is signed.

        Raises:
            NotVerified: with the reason; one notification that is not signed refuses them all.
        """
        items = unverified_object(request.body).get(LIST)
        if not isinstance(items, list) or not items:
            raise NotVerified("the body has no notifications", Cause.SIGNATURE_MISSING)
        return Verified(max(self._which(position, item) for position, item in enumerate(items)))

    def sign_body(self, body: bytes, now: float) -> bytes:
        """The body with a signature in every notification.

        Raises:
            UnreadableBody: if it has none.
        """
        document = read_json(body)
        items = [in_document(each.part, (ITEM,)) for each in ITEMS.of(document)]
        if not isinstance(document, dict) or not items or not all(isinstance(each, dict) for each in items):
            raise UnreadableBody("the body has no notifications")
        for item in items:
            message = signed(item)
            if message is None:
                raise UnreadableBody("a notification has a field that cannot be signed")
            if not isinstance(item.get(SIGNATURE[0]), dict):
                item[SIGNATURE[0]] = {}
            item[SIGNATURE[0]][SIGNATURE[1]] = _signature(self.keys[0], message).decode()
        return json.dumps(document).encode()

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """The headers of a notification: nothing in them is signed."""
        return Headers([("Content-Type", "application/json")])

    def _which(self, position: int, item: Any) -> int:
        notification = in_document(item, (ITEM,))
        given = in_document(notification, SIGNATURE)
        if not isinstance(given, str):
            raise NotVerified(
                f"notification {position} has no hmacSignature: create an HMAC key for the webhook, and let it be sent",
                Cause.SIGNATURE_MISSING,
            )
        message = signed(notification)
        if message is not None:
            offered = given.encode("utf-8", "surrogatepass")
            for number, key in enumerate(self.keys):
                if hmac.compare_digest(_signature(key, message), offered):
                    return number
        raise NotVerified(
            f"the hmacSignature of notification {position} does not match: the key is not that of the sender, or a "
            "field was changed",
            Cause.NO_MATCH,
        )


def signed(notification: Any) -> bytes | None:
    """What is signed of a notification: eight fields with colons between, those that are missing as empty ones; None
    if one of them is no text or whole number, or if another one than the merchant's reference holds a colon: a part of
    one field could then pass for another."""
    texts: list[str] = []
    for path in FIELDS:
        value = in_document(notification, path)
        if isinstance(value, bool):
            value = "true" if value else "false"
        if value is not None and not isinstance(value, str) and (not isinstance(value, int) or abs(value) >= 10**40):
            return None
        text = "" if value is None else str(value)
        if ":" in text and path != FREE_TEXT:
            return None
        texts.append(text)
    return ":".join(texts).encode("utf-8", "surrogatepass")


def _signature(key: bytes, message: bytes) -> bytes:
    return b64encode(hmac.digest(key, message, "sha256"))


def _resource(item: Any) -> Any:
    """originalReference, else pspReference"""
    return in_document(item, (ITEM, "originalReference")) or in_document(item, (ITEM, "pspReference"))


adyen = Provider(
    name="adyen",
    title="Adyen",
    documentation="https://docs.adyen.com/development-resources/webhooks/",
    family=Family.IN_BODY,
    verifier=AdyenVerifier,
    key_encoding="hex",
    covers_body=False,
    items=LIST,
    event_id=joined(f"{ITEM}.eventCode", f"{ITEM}.pspReference", f"{ITEM}.success?"),
    event_type=f"{ITEM}.eventCode",
    resource=OfItem(_resource),
    version=f"{ITEM}.eventDate",
    deleted=(),
    accepted=Response(200, b"[accepted]"),
    survives="""eventCode and pspReference are the same when Adyen sends a notification again, and both are signed;
    pspReference alone is not: it is that of the payment, too.""",
    cautions="""Only eight fields of a notification are signed: pspReference, originalReference, merchantAccountCode,
    merchantReference, the amount, eventCode and success; whoever sees one request can change the others, such as
    reason, paymentMethod and eventDate. All notifications of a request are refused if one is not signed; Adyen sends
    one at a time.""",
    verified_by=("adyen-python-api-library V24",),
    unconfirmed=("Adyen waits 10 seconds for an answer. Newer accounts take any 2xx, older ones want [accepted].",),
)
