"""Stripe. https://docs.stripe.com/webhooks"""

from __future__ import annotations

from typing import Any

from hookledger.sources.accounts import SecretsOf
from hookledger.sources.describe import Family, Places, Provider, Scheme, SecretRules
from hookledger.sources.scheme import require_tolerance
from hookledger.sources.secrets import Secrets
from hookledger.sources.source import Source
from hookledger.sources.timestamps import DEFAULT_TOLERANCE

STRIPE = Provider(
    name="stripe",
    title="Stripe",
    documentation="https://docs.stripe.com/webhooks",
    family=Family.TIMED_HMAC,
    # https://docs.stripe.com/webhooks#verify-manually; other schemes, such as v0, are skipped.
    schemes=Scheme((Places("Stripe-Signature"),), prefixes=("v1=",), signed="{timestamp}.{body}", timestamp_item="t="),
    secret=SecretRules(foreign_prefixes=("sk_", "pk_", "rk_")),
    event_id="id",
    event_type="type",
    resource=("data.object.id", "related_object.id"),
    version="created",
    version_unit="seconds",
    survives="""The body's id is the same at every attempt and when an event is sent again by hand; the signed
    timestamp is not.""",
    cautions="""`created` has whole seconds: on equal versions the later arrival wins. At times Stripe makes two events
    of one fact, with two ids.""",
    verified_by=("stripe-dotnet V08",),
    unconfirmed=(
        "That thin events name their object in related_object.",
        "That a rolled secret goes on signing for up to 24 hours.",
    ),
)


def stripe(
    name: str = "stripe", *, secrets: Secrets | SecretsOf, tolerance: float = DEFAULT_TOLERANCE, **settings: Any
) -> Source:
    """Events of Stripe, of the API v1 and thin events of v2.

    The event id is the body's `id`, the type its `type`; the resource is the id of `data.object` (v2: of
    `related_object`), the version the time `created`. That time has whole seconds, and on equal versions the
    later arrival wins. An event is a deletion if its type ends with `.deleted`.

    Args:
        name: of the source.
        secrets: of the endpoint, as Stripe shows them, with `whsec_`; several while a secret is rolled; or a
            function of the request that gives them.
        tolerance: how far the signed timestamp may be off our clock, either way, in seconds.
        settings: `content_encoding`, as for every provider.

    Raises:
        SecretError: for a secret that is empty, blank, wrongly spelled, or an API key.
        SetupError: for a tolerance that is not above 0, or a setting that Stripe has no use for.
    """
    require_tolerance(tolerance)
    return STRIPE(name, secrets=secrets, tolerance=tolerance, **settings)
