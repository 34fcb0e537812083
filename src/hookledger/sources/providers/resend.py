"""Resend. https://resend.com/docs/webhooks/introduction"""

from __future__ import annotations

from hookledger.sources.describe import SIGNED_ID, Family, Provider
from hookledger.sources.providers.svix import SVIX_SCHEME

resend = Provider(
    name="resend",
    title="Resend",
    documentation="https://resend.com/docs/webhooks/introduction",
    family=Family.STANDARD_WEBHOOKS,
    schemes=SVIX_SCHEME,
    event_id=SIGNED_ID,
    event_type="type",
    resource=("data.email_id", "data.id"),
    version="created_at",
    survives="The id in the headers is signed and stays the same at every attempt; the signed timestamp does not.",
    unconfirmed=("The fields of events that are not about e-mails.",),
)
