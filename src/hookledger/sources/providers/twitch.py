"""Twitch EventSub. https://dev.twitch.tv/docs/eventsub/handling-webhook-events/"""

from __future__ import annotations

from typing import Any

from hookledger.sources.describe import SIGNED_ID, Family, OfItem, Places, Provider, Scheme, SecretRules
from hookledger.sources.handshakes import twitch_challenge
from hookledger.sources.reading import in_document

HEADER = "Twitch-Eventsub-Message"
TEN_MINUTES = 600.0


def _kind(body: Any) -> Any:
    """subscription.type, or "revocation" where the body has no event"""
    if not isinstance(body, dict):
        return None
    # The header that tells the two apart is not signed.
    return in_document(body, ("subscription", "type")) if "event" in body or "events" in body else "revocation"


twitch = Provider(
    name="twitch",
    title="Twitch",
    documentation="https://dev.twitch.tv/docs/eventsub/handling-webhook-events/",
    family=Family.TIMED_HMAC,
    schemes=Scheme(
        (Places(f"{HEADER}-Signature", f"{HEADER}-Timestamp", f"{HEADER}-Id"),),
        prefixes=("sha256=",),
        separator=None,
        signed="{id}{timestamp}{body}",
        timestamp_unit="iso8601",
        tolerance_past=TEN_MINUTES,
        tolerance_future=TEN_MINUTES,
    ),
    secret=SecretRules(pattern=r"[\x20-\x7e]{10,100}", pattern_says="10 to 100 characters of ASCII"),
    event_id=SIGNED_ID,
    event_type=OfItem(_kind),
    resource=("event.broadcaster_user_id", "event.user_id", "subscription.id"),
    version=None,
    deleted=(),
    handshake=twitch_challenge,
    refused_status=403,
    survives="The message id is signed and kept when Twitch sends a message again.",
    cautions="""Which kind of message it is, and of which subscription, are read from the body: their headers are not
    signed. Nothing in an event orders it: give the handler a version= function if it needs one. A batch of
    drop.entitlement.grant is one delivery.""",
    unconfirmed=("The limit of ten minutes.", "Whether the signed timestamp is the same when a message is sent again."),
)
