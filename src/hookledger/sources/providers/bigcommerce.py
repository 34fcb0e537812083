"""BigCommerce. https://developer.bigcommerce.com/docs/integrations/webhooks"""

from __future__ import annotations

from dataclasses import replace

from hookledger.sources.describe import SIGNED_ID, Family, Provider, joined
from hookledger.sources.providers.standard_webhooks import STANDARD_SCHEME

bigcommerce = Provider(
    name="bigcommerce",
    title="BigCommerce",
    documentation="https://developer.bigcommerce.com/docs/integrations/webhooks",
    family=Family.STANDARD_WEBHOOKS,
    # The key is the client secret of the app as the text that it is.
    schemes=replace(STANDARD_SCHEME, places=STANDARD_SCHEME.places[:1], key_encoding="utf-8"),
    event_id=SIGNED_ID,
    event_type="scope",
    resource=joined("producer", "data.type", "data.id"),
    version="created_at",
    version_unit="seconds",
    deleted=("*/deleted",),
    survives="""webhook-id is signed and the same at every attempt of two days. `hash` in the body is the same when one
    event fires twice, which are then two.""",
    cautions="""Webhooks without a signature, which carry only headers of your own choice, are refused. Events name what
    changed and do not hold it: fetch the object. `created_at` has whole seconds: on equal versions the later arrival
    wins.""",
)
