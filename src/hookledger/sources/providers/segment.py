"""Segment, the Webhooks destination. https://segment.com/docs/connections/destinations/catalog/actions-webhook/"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

segment = Provider(
    name="segment",
    title="Segment",
    documentation="https://segment.com/docs/connections/destinations/catalog/actions-webhook/",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("X-Signature"),), algorithm="hmac-sha1", separator=None),
    event_id="messageId",
    event_type=joined("type", "event?", by="."),
    resource=("userId", "anonymousId"),
    version="timestamp",
    deleted=(),
    survives="messageId names the message and is the same at every attempt of four hours.",
    cautions="""Batches are refused: Segment signs only the first event of a batch, so the others could be anybody's.
    Set the batch size to 1. No timestamp is signed, and SHA-1 is all that Segment offers. Without a shared secret at
    Segment nothing is signed, and refused.""",
    unconfirmed=("That messageId is the same at every attempt.",),
)
