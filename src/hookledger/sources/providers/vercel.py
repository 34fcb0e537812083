"""Vercel. https://vercel.com/docs/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

vercel = Provider(
    name="vercel",
    title="Vercel",
    documentation="https://vercel.com/docs/webhooks/webhooks-api",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("x-vercel-signature"),), algorithm="hmac-sha1", separator=None),
    event_id="id",
    event_type="type",
    resource=("payload.deployment.id", "payload.project.id", "payload.domain.name"),
    version="createdAt",
    version_unit="milliseconds",
    deleted=("deployment.deleted", "project.removed"),
    survives="id names the event and is the same at every attempt.",
    cautions="No timestamp is signed, and SHA-1 is all that Vercel offers.",
    unconfirmed=(
        "The deadline of 30 seconds, and retries for 24 hours.",
        "That log drains, which have a secret of their own, sign in the same way.",
    ),
)
