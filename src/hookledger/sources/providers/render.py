"""Render. https://render.com/docs/webhooks"""

from __future__ import annotations

from dataclasses import replace

from hookledger.sources.describe import SIGNED_ID, Family, Provider
from hookledger.sources.providers.standard_webhooks import STANDARD_SCHEME

render = Provider(
    name="render",
    title="Render",
    documentation="https://render.com/docs/webhooks",
    family=Family.STANDARD_WEBHOOKS,
    schemes=replace(STANDARD_SCHEME, places=STANDARD_SCHEME.places[:1]),
    event_id=SIGNED_ID,
    event_type="type",
    resource=("data.serviceId", "data.id"),
    version="timestamp",
    deleted=(),
    survives="The id in the headers is signed and stays the same at every attempt; the signed timestamp does not.",
    unconfirmed=("The fields of the body.",),
)
