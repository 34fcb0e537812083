"""Lemon Squeezy. https://docs.lemonsqueezy.com/help/webhooks"""

from __future__ import annotations

import hashlib
from typing import Any

from hookledger.sources.describe import Family, OfItem, Places, Provider, Scheme, SecretRules, joined
from hookledger.sources.items import written
from hookledger.sources.reading import in_document


def _identity(body: Any) -> str | None:
    """event, resource and a digest of the attributes."""
    parts = [in_document(body, path) for path in (("meta", "event_name"), ("data", "type"), ("data", "id"))]
    attributes = in_document(body, ("data", "attributes"))
    if not all(isinstance(each, str) and each for each in parts) or not isinstance(attributes, dict):
        return None
    # The links in it are signed for a time.
    lasting = {name: value for name, value in attributes.items() if name not in ("urls", "url")}
    return "/".join([*parts, hashlib.sha256(written(lasting, sort=True)).hexdigest()[:32]])


lemon_squeezy = Provider(
    name="lemon-squeezy",
    title="Lemon Squeezy",
    documentation="https://docs.lemonsqueezy.com/help/webhooks/signing-requests",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("X-Signature"),), separator=None),
    secret=SecretRules(foreign_prefixes=("eyJ",)),
    event_id=OfItem(_identity),
    event_type=("meta.event_name", "header:X-Event-Name"),
    resource=joined("data.type", "data.id"),
    version="data.attributes.updated_at",
    deleted=(),
    survives="""Lemon Squeezy sends no id. The event, its object and the object's attributes are the same at each of the
    three retries; updated_at alone has whole seconds, in which a subscription may change twice.""",
    cautions="""updated_at has whole seconds: on equal versions the later arrival wins. Lemon Squeezy tries only four
    times, within minutes: what is lost then can be sent again from its dashboard.""",
    unconfirmed=(
        "The form of the header X-Signature, hex without a prefix.",
        "Whether meta.webhook_id names an event or a webhook; it is not used.",
    ),
)
