"""Typeform. https://www.typeform.com/developers/webhooks/"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

typeform = Provider(
    name="typeform",
    title="Typeform",
    documentation="https://www.typeform.com/developers/webhooks/secure-your-webhooks/",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("Typeform-Signature"),), encoding="base64", prefixes=("sha256=",), separator=None),
    event_id="event_id",
    event_type="event_type",
    resource="form_response.token",
    version="form_response.submitted_at",
    deleted=(),
    survives="event_id names the event and is the same at every attempt.",
    cautions="No timestamp is signed.",
    unconfirmed=(
        "The deadline of 30 seconds, and retries for about 36 hours.",
        "That an answer of 404 or 410 switches the webhook off.",
    ),
)
