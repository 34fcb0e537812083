"""Clerk. https://clerk.com/docs/guides/development/webhooks/overview"""

from __future__ import annotations

from hookledger.sources.describe import SIGNED_ID, Family, Provider
from hookledger.sources.providers.svix import SVIX_SCHEME

clerk = Provider(
    name="clerk",
    title="Clerk",
    documentation="https://clerk.com/docs/guides/development/webhooks/overview",
    family=Family.STANDARD_WEBHOOKS,
    schemes=SVIX_SCHEME,
    event_id=SIGNED_ID,
    event_type="type",
    resource="data.id",
    # What is deleted has no updated_at.
    version=("data.updated_at", "timestamp"),
    version_unit="milliseconds",
    survives="The id in the headers is signed and stays the same at every attempt; the signed timestamp does not.",
)
