"""Adyen for Platforms: webhooks of the balance platform and of management, signed in a header.

https://docs.adyen.com/platforms/webhooks
"""

from __future__ import annotations

from hookledger.http import Response
from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

adyen_platform = Provider(
    name="adyen-platform",
    title="Adyen for Platforms",
    documentation="https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures/",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("HmacSignature"),), encoding="base64", separator=None, key_encoding="hex"),
    event_id=joined("type", "data.id", "data.sequenceNumber"),
    event_type="type",
    resource=(
        "data.id",
        "data.accountHolder.id",
        "data.balanceAccount.id",
        "data.paymentInstrument.id",
        "data.sweep.id",
        "data.storeId",
        "data.merchantId",
    ),
    version=("data.sequenceNumber", "timestamp"),
    accepted=Response(200, b"[accepted]"),
    survives="""A transfer's events are numbered, and type, id and number are in the signed body. No other event has an
    id: their bytes are the key, as Adyen's times have whole seconds, in which an object may change twice.""",
    cautions="""Test and live webhooks have keys of their own. While a key is changed give both. Payments are another
    webhook, signed item by item in the body.""",
    verified_by=("adyen-python-api-library V26",),
    unconfirmed=(
        "That a webhook is sent again in the same bytes.",
        "Whether any 2xx is enough today; the answer is 200 with [accepted], which always was.",
    ),
)
