"""Linear. https://linear.app/developers/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, SecretRules, joined

A_MINUTE = 60.0

linear = Provider(
    name="linear",
    title="Linear",
    documentation="https://linear.app/developers/webhooks",
    family=Family.BODY_HMAC,
    # The time is in the signed body; the header Linear-Timestamp is not signed, and not looked at.
    schemes=Scheme(
        (Places("Linear-Signature", "body:webhookTimestamp"),),
        separator=None,
        timestamp_unit="milliseconds",
        tolerance_past=A_MINUTE,
        tolerance_future=A_MINUTE,
    ),
    secret=SecretRules(foreign_prefixes=("lin_api_", "lin_oauth_")),
    event_id="header:Linear-Delivery",
    event_type=(joined("type", "action", by="."), "header:Linear-Event"),
    resource=(joined("type", "data.id"), joined("type", "agentSession.id"), joined("type", "notification.id")),
    # The time of the action: a removal leaves updatedAt as it was.
    version=("createdAt", "data.updatedAt"),
    deleted=("*.remove",),
    survives="""Linear-Delivery names the payload, of which three retries follow after a minute, an hour and six hours;
    webhookId names the webhook and is the same for all its events.""",
    cautions="""The header with the id is not signed. Linear wants webhookTimestamp to be within a minute: if retries
    are refused as too old, or if anything stands between Linear and this receiver, give tolerance=.""",
    unconfirmed=(
        "That Linear-Delivery is the same at every attempt.",
        "That webhookTimestamp is the time of sending, made anew for a retry.",
    ),
)
