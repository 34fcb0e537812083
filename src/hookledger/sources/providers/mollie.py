"""Mollie, next-gen webhooks. https://docs.mollie.com/reference/webhooks-new"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, SecretRules

mollie = Provider(
    name="mollie",
    title="Mollie",
    documentation="https://docs.mollie.com/reference/webhooks-new",
    family=Family.BODY_HMAC,
    # Mollie's own library takes the signature with and without its prefix, and in several headers.
    schemes=Scheme((Places("X-Mollie-Signature"),), prefixes=("sha256=", "")),
    secret=SecretRules(foreign_prefixes=("live_", "test_", "access_")),
    event_id="id",
    event_type="type",
    resource="entityId",
    version="createdAt",
    survives="The body's id names the event and is the same at every attempt.",
    cautions="""The classic webhooks, a form with nothing but an id, are not signed and are refused here; for them there
    is mollie-classic.""",
    unconfirmed=("Ten attempts over 26 hours, and how long Mollie waits for an answer: 15 seconds, or 2.",),
)
