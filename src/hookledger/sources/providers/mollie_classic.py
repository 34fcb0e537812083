"""Mollie, classic webhooks: the id of what has changed, and nothing else. https://docs.mollie.com/reference/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import EACH_REQUEST, Family, Provider, shared_token

mollie_classic = Provider(
    name="mollie-classic",
    title="Mollie (classic webhooks)",
    documentation="https://docs.mollie.com/reference/webhooks",
    family=Family.TOKEN,
    # Mollie signs nothing, and calls the URL that it was given with its query.
    schemes=shared_token("query:token"),
    format="form",
    event_id=EACH_REQUEST,
    event_type=None,
    resource="id",
    version=None,
    deleted=(),
    survives="""Nothing: every change of a payment comes as the same bytes, so each request is an event of its own, and
    one that is sent again is one event more.""",
    cautions="""Nothing is signed: whoever sees one request can send others. Put a secret of your own into the
    webhookUrl of each payment, https://example.com/webhooks/mollie-classic?token=..., and give it as secrets=; keep
    query strings out of the logs of your proxy. Take only the id from a request: read the payment from Mollie's API and
    go by what that says.""",
)
