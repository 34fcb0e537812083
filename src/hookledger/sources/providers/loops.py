"""Loops. https://loops.so/docs/webhooks"""

from __future__ import annotations

from dataclasses import replace

from hookledger.sources.describe import SIGNED_ID, Family, Provider
from hookledger.sources.providers.standard_webhooks import STANDARD_SCHEME

loops = Provider(
    name="loops",
    title="Loops",
    documentation="https://loops.so/docs/webhooks",
    family=Family.STANDARD_WEBHOOKS,
    schemes=replace(STANDARD_SCHEME, places=STANDARD_SCHEME.places[:1]),
    event_id=SIGNED_ID,
    event_type="eventName",
    resource="contactIdentity.id",
    version="eventTime",
    version_unit="seconds",
    deleted=("contact.deleted",),
    survives="The id in the headers is signed and stays the same at every attempt; the signed timestamp does not.",
    cautions="`eventTime` has whole seconds: on equal versions the later arrival wins.",
    unconfirmed=("That the contact's id is contactIdentity.id.",),
)
