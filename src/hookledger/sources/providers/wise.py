"""Wise. https://docs.wise.com/features/webhooks-notifications/event-handling"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

wise = Provider(
    name="wise",
    title="Wise",
    documentation="https://docs.wise.com/features/webhooks-notifications/event-handling",
    family=Family.PUBLIC_KEY,
    schemes=Scheme(
        (Places("X-Signature-SHA256"),), algorithm="rsa-sha256", encoding="base64", separator=None, key_encoding="spki"
    ),
    event_id="header:X-Delivery-Id",
    event_type="event_type",
    resource=joined("data.resource.type", "data.resource.id"),
    version="data.occurred_at",
    deleted=(),
    survives="X-Delivery-Id names the delivery and is kept over the 25 attempts of two weeks.",
    cautions="""The secret is the public key that Wise publishes, one for production and another for the sandbox. No
    timestamp and no header is signed: somebody who holds a signed body can send it under another id.""",
    unconfirmed=("That X-Delivery-Id is the same at every attempt.",),
)
