"""Notion. https://developers.notion.com/reference/webhooks"""

from __future__ import annotations

from collections.abc import Callable

from hookledger.sources.describe import Family, Option, Places, Provider, Scheme, joined
from hookledger.sources.handshakes import notion_verification_token

notion = Provider(
    name="notion",
    title="Notion",
    documentation="https://developers.notion.com/reference/webhooks",
    family=Family.BODY_HMAC,
    # The secret is the verification token, which comes when the subscription is made.
    schemes=Scheme((Places("X-Notion-Signature"),), prefixes=("sha256=",), separator=None),
    event_id="id",
    event_type="type",
    resource=joined("entity.type", "entity.id"),
    version="timestamp",
    unverified_handshake=notion_verification_token,
    options=(
        Option(
            "on_secret",
            "a function of the request and the token that keeps it and returns True if a subscription is being made",
            kind=Callable,
        ),
    ),
    survives="id names the event and is the same at every attempt; attempt_number counts them.",
    cautions="""Anybody can send a token: on_secret must return True only while you are making a subscription. No
    timestamp is signed. Events name what changed and do not hold it: fetch it.""",
)
