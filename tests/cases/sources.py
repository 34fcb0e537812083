"""The senders of the cases, as users configure them, and how each signs."""

from __future__ import annotations

import hmac
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace

from hookledger import Source, github, hmac_source, standard_webhooks, stripe
from hookledger.sources import slack, telegram, twilio
from tests.receiving import many

KEY = b"k-test-1"
STANDARD_KEY = b"0123456789abcdef01234567"
STANDARD_SECRET = f"whsec_{b64encode(STANDARD_KEY).decode()}"
TOKEN = "k-test-1_k-test-1"
PUBLIC_URL = "https://h.test/hooks/t"

HeaderPairs = Sequence[tuple[str, str]]


def sources() -> list[Source]:
    """All of them."""
    secret = KEY.decode()
    shop = hmac_source("shop", header="X-Sig", prefix="v1=", secrets=secret, resource="resource", version="version")
    return [
        github(secrets=secret),
        github("app-a", secrets="secret of a"),
        github("app-b", secrets="secret of b"),
        stripe(secrets=secret),
        slack(secrets=secret),
        standard_webhooks(secrets=STANDARD_SECRET),
        telegram(secrets=TOKEN),
        twilio("t", secrets=secret, url=PUBLIC_URL),
        shop,
        many(),
        hmac_source(
            "form", header="X-Sig", prefix="v1=", secrets=secret, format="form", event_id="payload.id", resource="x"
        ),
        replace(shop, name="plain", content_encoding="signed-plain"),
        replace(shop, name="packed", content_encoding="signed-compressed"),
    ]


def digest(signed: bytes, key: bytes = KEY) -> str:
    """The hex HMAC-SHA256."""
    return hmac.digest(key, signed, "sha256").hex()


def hub(body: bytes, key: bytes = KEY) -> HeaderPairs:
    """As GitHub signs."""
    return [("X-Hub-Signature-256", f"sha256={digest(body, key)}")]


def x_sig(body: bytes) -> HeaderPairs:
    """As the shop signs."""
    return [("X-Sig", f"v1={digest(body)}")]


def strp(body: bytes, offset: int = 0) -> HeaderPairs:
    """As Stripe signs, that many seconds from now."""
    moment = int(time.time()) + offset
    return [("Stripe-Signature", f"t={moment},v1={digest(f'{moment}.'.encode() + body)}")]


def slacked(body: bytes, offset: int = 0) -> HeaderPairs:
    """As Slack signs, that many seconds from now."""
    moment = int(time.time()) + offset
    signature = digest(f"v0:{moment}:".encode() + body)
    return [("X-Slack-Request-Timestamp", str(moment)), ("X-Slack-Signature", f"v0={signature}")]


def std(body: bytes, id: str = "msg_1", offset: int = 0) -> HeaderPairs:
    """As Standard Webhooks says, that many seconds from now."""
    moment = int(time.time()) + offset
    signature = b64encode(hmac.digest(STANDARD_KEY, f"{id}.{moment}.".encode() + body, "sha256")).decode()
    return [("webhook-id", id), ("webhook-timestamp", str(moment)), ("webhook-signature", f"v1,{signature}")]
