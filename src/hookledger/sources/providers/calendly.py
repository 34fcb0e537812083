"""Calendly. https://developer.calendly.com/api-docs/4c305798a61d3-webhook-signatures"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

calendly = Provider(
    name="calendly",
    title="Calendly",
    documentation="https://developer.calendly.com/api-docs/4c305798a61d3-webhook-signatures",
    family=Family.TIMED_HMAC,
    schemes=Scheme(
        (Places("Calendly-Webhook-Signature"),), prefixes=("v1=",), signed="{timestamp}.{body}", timestamp_item="t="
    ),
    event_id=joined("event", "payload.uri", "created_at"),
    event_type="event",
    resource="payload.uri",
    version="created_at",
    deleted=(),
    survives="No id is sent; the event, what it is about and the time in its body are the same when it is sent again.",
    unconfirmed=(
        "The tolerance: 3 to 5 minutes are recommended, 5 are allowed.",
        "Retries for 24 hours, after which the webhook is switched off.",
    ),
)
