"""What providers' own libraries for Python make of requests; each is imported when it is first asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

from hookledger.http import Headers, Request

Signs = Callable[[bytes, float], Mapping[str, str]]
Verifies = Callable[[Request], bool]

SECRET = "k-test-1"
STANDARD_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
HEX_KEY = "6b2d746573742d316b2d746573742d31"
URL = "https://example.com/webhooks/of-the-provider?shop=1"
JSON_BODIES = (
    b'{"id":"e1","n":1.0}',
    '{ "id": "caf\u00e9 \u2615 \U0001f600", "tags": ["<b>", "a/b"],\r\n "n": 12345678901234567890 }\r\n'.encode(),
)
FORM_BODIES = (b"MessageSid=SM1&MessageStatus=sent", b"From=%2B1415&Body=caf%C3%A9+%26+more&a=2&a=1&a=2&Empty=")


@dataclass(frozen=True)
class Vendor:
    """A provider's own library.

    Args:
        provider: whose it is.
        verifies: what it says of a request.
        signs: headers that it would send with a body; None if it only verifies.
        secret: of the right spelling.
        url: the public URL, where it is signed.
        bodies: that are sent.
    """

    provider: str
    verifies: Verifies
    signs: Signs | None = None
    secret: str = SECRET
    url: str | None = None
    bodies: tuple[bytes, ...] = JSON_BODIES


def header(request: Request, name: str) -> str:
    return request.headers.get(name) or ""


def _stripe_verifies(request: Request) -> bool:
    import stripe

    try:
        return stripe.WebhookSignature.verify_header(
            request.body.decode(), header(request, "Stripe-Signature"), SECRET, tolerance=300
        )
    except stripe.SignatureVerificationError:
        return False


def _stripe_signs(body: bytes, now: float) -> Mapping[str, str]:
    import stripe

    signature = stripe.WebhookSignature._compute_signature(f"{int(now)}.{body.decode()}", SECRET)
    return {"Stripe-Signature": f"t={int(now)},v1={signature}"}


def _standard_verifies(request: Request) -> bool:
    from standardwebhooks import Webhook, WebhookVerificationError

    try:
        Webhook(STANDARD_SECRET).verify(request.body, dict(request.headers), json_parse=False)
    except WebhookVerificationError:
        return False
    return True


def _standard_signs(body: bytes, now: float) -> Mapping[str, str]:
    from standardwebhooks import Webhook

    at = datetime.fromtimestamp(int(now), UTC)
    signature = Webhook(STANDARD_SECRET).sign("msg_1", at, body.decode())
    return {"webhook-id": "msg_1", "webhook-timestamp": str(int(now)), "webhook-signature": signature}


def _svix_verifies(request: Request) -> bool:
    from svix.webhooks import Webhook, WebhookVerificationError

    named = {name.replace("webhook-", "svix-"): value for name, value in request.headers}
    try:
        Webhook(STANDARD_SECRET).verify(request.body, named)
    except WebhookVerificationError:
        return False
    return True


def _svix_signs(body: bytes, now: float) -> Mapping[str, str]:
    from svix.webhooks import Webhook

    at = datetime.fromtimestamp(int(now), UTC)
    signature = Webhook(STANDARD_SECRET).sign("msg_1", at, body.decode())
    return {"svix-id": "msg_1", "svix-timestamp": str(int(now)), "svix-signature": f"v1a,AAAA {signature}"}


class _Fields:
    """A form as Flask has it, which the library of Twilio knows how to ask."""

    def __init__(self, body: bytes) -> None:
        self._fields = parse_qs(body.decode(), keep_blank_values=True)

    def __iter__(self) -> Any:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def getlist(self, name: str) -> list[str]:
        return self._fields[name]


def _twilio_verifies(request: Request) -> bool:
    from twilio.request_validator import RequestValidator

    return bool(RequestValidator(SECRET).validate(URL, _Fields(request.body), header(request, "X-Twilio-Signature")))


def _twilio_signs(body: bytes, now: float) -> Mapping[str, str]:
    from twilio.request_validator import RequestValidator

    signature = RequestValidator(SECRET).compute_signature(URL, _Fields(body))
    return {"X-Twilio-Signature": signature, "Content-Type": "application/x-www-form-urlencoded"}


def _slack_verifies(request: Request) -> bool:
    from slack_sdk.signature import SignatureVerifier

    return SignatureVerifier(SECRET * 4).is_valid_request(request.body, dict(request.headers))


def _slack_signs(body: bytes, now: float) -> Mapping[str, str]:
    from slack_sdk.signature import SignatureVerifier

    timestamp = str(int(now))
    signature = SignatureVerifier(SECRET * 4).generate_signature(timestamp=timestamp, body=body)
    return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": str(signature)}


def _paddle_verifies(request: Request) -> bool:
    from paddle_billing.Notifications import Secret, Verifier

    sent = SimpleNamespace(headers=dict(request.headers), body=request.body)
    return bool(Verifier(300).verify(sent, Secret(SECRET)))


def _paddle_signs(body: bytes, now: float) -> Mapping[str, str]:
    from paddle_billing.Notifications.PaddleSignature import PaddleSignature

    made = PaddleSignature.calculate_hmac(SECRET, f"{int(now)}:".encode() + body).hexdigest()
    return {"Paddle-Signature": f"ts={int(now)};h1={'0' * 64};h1={made}"}


def _square_verifies(request: Request) -> bool:
    from square.utils.webhooks_helper import verify_signature

    return verify_signature(
        request_body=request.body.decode(),
        signature_header=header(request, "x-square-hmacsha256-signature"),
        signature_key=SECRET,
        notification_url=URL,
    )


def _hubspot_verifies(request: Request) -> bool:
    from hubspot.utils.signature import Signature

    return Signature.is_valid(
        header(request, "X-HubSpot-Signature-v3"),
        SECRET,
        request.body.decode(),
        URL,
        signature_version="v3",
        timestamp=header(request, "X-HubSpot-Request-Timestamp"),
    )


def _hubspot_signs(body: bytes, now: float) -> Mapping[str, str]:
    from hubspot.utils.signature import Signature

    timestamp = str(int(now * 1000))
    signature = Signature.get_signature(SECRET, body.decode(), "v3", URL, timestamp=timestamp)
    return {"X-HubSpot-Signature-v3": signature, "X-HubSpot-Request-Timestamp": timestamp}


def _razorpay_verifies(request: Request) -> bool:
    import razorpay

    try:
        return bool(
            razorpay.Utility().verify_webhook_signature(
                request.body.decode(), header(request, "X-Razorpay-Signature"), SECRET
            )
        )
    except razorpay.errors.SignatureVerificationError:
        return False


def _adyen_platform_verifies(request: Request) -> bool:
    from Adyen.util import is_valid_hmac_payload

    return bool(is_valid_hmac_payload(header(request, "HmacSignature"), HEX_KEY, request.body))


def _adyen_platform_signs(body: bytes, now: float) -> Mapping[str, str]:
    from Adyen.util import generate_payload_sig

    return {"HmacSignature": generate_payload_sig(body, HEX_KEY).decode()}


VENDORS = {
    "stripe": Vendor("stripe", _stripe_verifies, _stripe_signs),
    "standardwebhooks": Vendor("standard-webhooks", _standard_verifies, _standard_signs, STANDARD_SECRET),
    "svix": Vendor("standard-webhooks", _svix_verifies, _svix_signs, STANDARD_SECRET),
    "twilio": Vendor("twilio", _twilio_verifies, _twilio_signs, url=URL, bodies=FORM_BODIES),
    "slack_sdk": Vendor("slack", _slack_verifies, _slack_signs, SECRET * 4),
    "paddle-python-sdk": Vendor("paddle", _paddle_verifies, _paddle_signs),
    "squareup": Vendor("square", _square_verifies, url=URL),
    "hubspot-api-client": Vendor("hubspot", _hubspot_verifies, _hubspot_signs, url=URL),
    "razorpay": Vendor("razorpay", _razorpay_verifies),
    "Adyen, for platforms": Vendor("adyen-platform", _adyen_platform_verifies, _adyen_platform_signs, HEX_KEY),
}
"""By the name of the package. Those that sign with a private key, or items of the body, have tests of their own."""

WITH_TESTS_OF_THEIR_OWN = {
    "adyen": ("Adyen", "test_adyen"),
    "braintree": ("braintree", "test_braintree"),
    "discord": ("discord-interactions", "test_discord"),
    "jira-connect": ("atlassian-jwt", "test_atlassian_connect"),
    "plivo": ("plivo", "test_plivo"),
    "sendgrid": ("sendgrid", "test_sendgrid"),
}
"""Package and test, by the name of the provider."""


def _libraries() -> dict[str, list[str]]:
    found = {name: [package] for name, (package, _) in WITH_TESTS_OF_THEIR_OWN.items()}
    for package, vendor in VENDORS.items():
        found.setdefault(vendor.provider, []).append(package.partition(",")[0])
    return found


LIBRARIES = _libraries()
"""The packages that check a provider, by its name."""


def sent(vendor: Vendor, body: bytes, now: float | None = None) -> Request:
    """A request that the provider's own library has signed."""
    if vendor.signs is None:
        raise AssertionError(f"the library of {vendor.provider} does not sign")
    signed = vendor.signs(body, time.time() if now is None else now)
    return Request(vendor.provider, "POST", Headers(signed.items()), body)


def adyen_notification(items: list[dict[str, Any]]) -> bytes:
    """The body of a webhook with these items, signed by Adyen's own library."""
    from Adyen.util import generate_notification_sig

    signed = [
        {**item, "additionalData": {"hmacSignature": generate_notification_sig(item, HEX_KEY).decode()}}
        for item in items
    ]
    wrapped = [{"NotificationRequestItem": item} for item in signed]
    return json.dumps({"live": "false", "notificationItems": wrapped}).encode()
