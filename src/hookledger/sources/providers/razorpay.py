"""Razorpay. https://razorpay.com/docs/webhooks/"""

from __future__ import annotations

from typing import Any

from hookledger.sources.describe import Family, OfItem, Places, Provider, Scheme, SecretRules
from hookledger.sources.reading import in_document


def _subject(body: Any) -> Any:
    """id of the entity that the event is named after."""
    event = in_document(body, ("event",))
    words = event.split(".")[:-1] if isinstance(event, str) else []
    # payment.dispute.created is about payload.dispute, order.paid about payload.order although payload.payment is
    # there too.
    for name in (".".join(words), *reversed(words)):
        found = in_document(body, ("payload", name, "entity", "id"))
        if found is not None:
            return found
    return None


razorpay = Provider(
    name="razorpay",
    title="Razorpay",
    documentation="https://razorpay.com/docs/webhooks/validate-test/",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("X-Razorpay-Signature"),), separator=None),
    secret=SecretRules(foreign_prefixes=("rzp_live_", "rzp_test_")),
    event_id="header:X-Razorpay-Event-Id",
    event_type="event",
    resource=OfItem(_subject),
    version="created_at",
    version_unit="seconds",
    deleted=(),
    survives="X-Razorpay-Event-Id names the event and is the same at every attempt; Razorpay says to go by it.",
    cautions="""The header with the id is not signed. created_at has whole seconds: on equal versions the later arrival
    wins. The secret is that of the webhook and not the key secret of the API.""",
    verified_by=("razorpay-python V33",),
    unconfirmed=(
        "That retries go on for 24 hours and the webhook is then switched off.",
        "That after a change of the secret retries are still signed with the old one: give both.",
    ),
)
