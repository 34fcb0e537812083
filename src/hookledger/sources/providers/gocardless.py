"""GoCardless. https://developer.gocardless.com/api-reference/#appendix-webhooks"""

from __future__ import annotations

from typing import Any

from hookledger.http import Response
from hookledger.sources.describe import Family, OfItem, Places, Provider, Scheme, joined
from hookledger.sources.reading import in_document


def _subject(item: Any) -> str | None:
    """resource_type / the link of that name"""
    kind = item.get("resource_type") if isinstance(item, dict) else None
    # Links are named in the singular: a refund has one to its payment too.
    found = in_document(item, ("links", kind.removesuffix("s"))) if isinstance(kind, str) else None
    return f"{kind}/{found}" if isinstance(found, str) and found.strip() else None


gocardless = Provider(
    name="gocardless",
    title="GoCardless",
    documentation="https://developer.gocardless.com/api-reference/#appendix-webhooks",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("Webhook-Signature"),), separator=None),
    items="events",
    event_id="id",
    event_type=joined("resource_type", "action", by="."),
    resource=OfItem(_subject),
    version="created_at",
    deleted=(),
    accepted=Response(204),
    survives="Each item has an id of its own, which is the same in every request that brings it.",
    cautions="No timestamp is signed. Events name what changed and do not hold it: fetch it.",
    verified_by=("gocardless-pro-python V52",),
    unconfirmed=("That every kind of event has a link of its own name.", "When and how often GoCardless tries again."),
)
