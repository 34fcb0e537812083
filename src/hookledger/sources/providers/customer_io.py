"""Customer.io, reporting webhooks. https://docs.customer.io/integrations/data-out/connections/webhooks/"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

customer_io = Provider(
    name="customer-io",
    title="Customer.io",
    documentation="https://docs.customer.io/integrations/data-out/connections/webhooks/",
    family=Family.TIMED_HMAC,
    schemes=Scheme((Places("X-CIO-Signature", "X-CIO-Timestamp"),), separator=None, signed="v0:{timestamp}:{body}"),
    event_id="event_id",
    event_type=joined("object_type", "metric", by="."),
    resource=("data.delivery_id", "data.customer_id"),
    version="timestamp",
    version_unit="seconds",
    deleted=(),
    survives="event_id names the event and is the same at every attempt.",
    cautions="`timestamp` has whole seconds: on equal versions the later arrival wins.",
    unconfirmed=("The limit of five minutes for the signed timestamp.",),
)
