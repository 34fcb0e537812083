"""Anthropic. https://platform.claude.com/docs/en/managed-agents/webhooks"""

from __future__ import annotations

from dataclasses import replace

from hookledger.sources.describe import SIGNED_ID, Family, Provider
from hookledger.sources.providers.standard_webhooks import STANDARD_SCHEME

anthropic = Provider(
    name="anthropic",
    title="Anthropic",
    documentation="https://platform.claude.com/docs/en/managed-agents/webhooks",
    family=Family.STANDARD_WEBHOOKS,
    schemes=replace(STANDARD_SCHEME, places=STANDARD_SCHEME.places[:1]),
    event_id=SIGNED_ID,
    event_type="data.type",
    resource="data.id",
    version="created_at",
    survives="The id in the headers is signed and stays the same at every attempt; the signed timestamp does not.",
    cautions="Events name what changed and do not hold it: fetch the object.",
)
