"""Mux. https://www.mux.com/docs/core/listen-for-webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

mux = Provider(
    name="mux",
    title="Mux",
    documentation="https://www.mux.com/docs/core/verify-webhook-signatures",
    family=Family.TIMED_HMAC,
    schemes=Scheme((Places("Mux-Signature"),), prefixes=("v1=",), signed="{timestamp}.{body}", timestamp_item="t="),
    event_id="id",
    event_type="type",
    resource=joined("object.type", "object.id"),
    version="created_at",
    deleted=("video.asset.deleted", "video.live_stream.deleted"),
    survives="id names the event; what differs between attempts is the list attempts in the body, and the signature.",
    cautions="A retry has the attempts before it in its body, so that its bytes are others.",
    unconfirmed=("Retries for 24 hours.",),
)
