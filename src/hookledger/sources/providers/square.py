"""Square. https://developer.squareup.com/docs/webhooks/overview"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

square = Provider(
    name="square",
    title="Square",
    documentation="https://developer.squareup.com/docs/webhooks/step3validate",
    family=Family.URL_HMAC,
    schemes=Scheme((Places("x-square-hmacsha256-signature"),), encoding="base64", signed="{url}{body}"),
    event_id="event_id",
    event_type="type",
    resource=joined("data.type", "data.id"),
    version="created_at",
    survives="event_id is the same at each of the eleven retries, and so is the signature.",
    cautions="No timestamp is signed. `url` is the notification URL exactly as it stands in the Developer Console.",
    verified_by=("square-python-sdk V22",),
)
