"""Coinbase Commerce. https://docs.cdp.coinbase.com/commerce/docs/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

coinbase_commerce = Provider(
    name="coinbase-commerce",
    title="Coinbase Commerce",
    documentation="https://docs.cdp.coinbase.com/commerce/docs/webhooks-security",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("X-CC-Webhook-Signature"),), separator=None),
    event_id="event.id",
    event_type="event.type",
    resource=("event.data.code", "event.data.id"),
    version="event.created_at",
    survives="""event.id names the event. The body's own id and attempt_number are those of the attempt, so the bytes,
    and the signature, differ from attempt to attempt.""",
    cautions="created_at has whole seconds: on equal versions the later arrival wins.",
    verified_by=("coinbase-commerce-python V34",),
    unconfirmed=("That retries go on for three days, an hour apart at most.",),
)
