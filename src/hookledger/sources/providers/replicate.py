"""Replicate. https://replicate.com/docs/topics/webhooks"""

from __future__ import annotations

from dataclasses import replace

from hookledger.sources.describe import SIGNED_ID, Family, Provider
from hookledger.sources.providers.standard_webhooks import STANDARD_SCHEME

replicate = Provider(
    name="replicate",
    title="Replicate",
    documentation="https://replicate.com/docs/topics/webhooks",
    family=Family.STANDARD_WEBHOOKS,
    schemes=replace(STANDARD_SCHEME, places=STANDARD_SCHEME.places[:1]),
    event_id=SIGNED_ID,
    # The body is the prediction itself.
    event_type="status",
    resource="id",
    version=None,
    deleted=(),
    survives="The id in the headers is signed and stays the same at every attempt; the signed timestamp does not.",
    cautions="""The body is the prediction as it was when the request was made, and has no version: a request that is
    late can show an earlier status.""",
)
