"""Svix. https://docs.svix.com/receiving/introduction"""

from __future__ import annotations

from dataclasses import replace

from hookledger.sources.describe import SIGNED_ID, Family, Provider
from hookledger.sources.providers.standard_webhooks import STANDARD_SCHEME

SVIX_SCHEME = replace(STANDARD_SCHEME, places=STANDARD_SCHEME.places[::-1])
"""The headers svix-*, and webhook-* where there are none of those."""

svix = Provider(
    name="svix",
    title="Svix",
    documentation="https://docs.svix.com/receiving/introduction",
    family=Family.STANDARD_WEBHOOKS,
    schemes=SVIX_SCHEME,
    event_id=SIGNED_ID,
    event_type=("type", "eventType", "event_type"),
    resource="data.id",
    version="timestamp",
    survives="The id in the headers is signed and stays the same at every attempt; the signed timestamp does not.",
    cautions="""What stands in the body is up to the sender that uses Svix: where type, data.id and timestamp are not
    what they seem, describe the sender with standard_webhooks().""",
    verified_by=("Svix V11",),
)
