"""Sanity, GROQ-powered webhooks. https://www.sanity.io/docs/compute-and-ai/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

sanity = Provider(
    name="sanity",
    title="Sanity",
    documentation="https://www.sanity.io/docs/compute-and-ai/webhooks",
    family=Family.TIMED_HMAC,
    # https://github.com/sanity-io/webhook-toolkit/blob/main/src/signature.ts; that library sets no limit for the time.
    schemes=Scheme(
        (Places("sanity-webhook-signature"),),
        encoding="base64url",
        prefixes=("v1=",),
        signed="{timestamp}.{body}",
        timestamp_item="t=",
        timestamp_unit="milliseconds",
        tolerance_past=None,
        tolerance_future=None,
    ),
    event_id="header:idempotency-key",
    event_type="header:sanity-operation",
    resource="_id",
    version="_updatedAt",
    deleted=("delete",),
    survives="The header idempotency-key is made for a delivery and kept when it is sent again.",
    cautions="""Sanity documents no limit for the signed timestamp, and none is set: give tolerance= to have one. The id
    and the operation are headers, and not signed. What the body holds is up to the projection of the webhook: it needs
    _id and _updatedAt.""",
    verified_by=("webhook-toolkit V53",),
    unconfirmed=("That idempotency-key is the same at every attempt.",),
)
