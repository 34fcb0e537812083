"""Standard Webhooks, which Svix, Clerk, Resend, OpenAI, GitLab and others send. https://www.standardwebhooks.com"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hookledger.sources.accounts import SecretsOf
from hookledger.sources.describe import SIGNED_ID, Family, Places, Provider, Scheme
from hookledger.sources.event_reader import Deleted
from hookledger.sources.fields import Field
from hookledger.sources.reading import VersionUnit
from hookledger.sources.scheme import require_tolerance
from hookledger.sources.secrets import Secrets
from hookledger.sources.source import Source
from hookledger.sources.timestamps import DEFAULT_TOLERANCE

STANDARD_SCHEME = Scheme(
    places=(
        Places("webhook-signature", "webhook-timestamp", "webhook-id"),
        Places("svix-signature", "svix-timestamp", "svix-id"),
    ),
    encoding="base64",
    prefixes=("v1,",),
    separator=" ",
    signed="{id}.{timestamp}.{body}",
    key_encoding="whsec",
)
"""`webhook-signature: v1,<base64> v1,<base64>`; other versions of a signature are skipped.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

ASYMMETRIC_SCHEME = replace(
    STANDARD_SCHEME, algorithm="ed25519", prefixes=("v1a,",), key_encoding="base64", key_prefix="whpk_"
)
"""`v1a`, with a public key that begins with `whpk_`."""

STANDARD_WEBHOOKS = Provider(
    name="standard-webhooks",
    title="Standard Webhooks",
    documentation="https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md",
    family=Family.STANDARD_WEBHOOKS,
    schemes=(STANDARD_SCHEME, ASYMMETRIC_SCHEME),
    event_id=SIGNED_ID,
    event_type="type",
    resource="data.id",
    version="timestamp",
    survives="The header webhook-id is signed and stays the same at every attempt; webhook-timestamp does not.",
    verified_by=("standard-webhooks V09", "Svix V10", "Svix V11"),
)


def standard_webhooks(
    name: str = "standard-webhooks",
    *,
    secrets: Secrets | SecretsOf,
    tolerance: float = DEFAULT_TOLERANCE,
    event_type: Field | None = "type",
    resource: Field | None = "data.id",
    version: Field | None = "timestamp",
    version_unit: VersionUnit | None = None,
    deleted: Deleted = ("*.deleted",),
    **settings: Any,
) -> Source:
    """Events of any sender that follows Standard Webhooks, with the headers `webhook-*` or `svix-*`.

    The event id is the header `webhook-id`, which is signed and stays the same at every attempt.

    Args:
        name: of the source.
        secrets: each begins with `whsec_`, or `whpk_` for the public key of a sender that signs with v1a; several
            while a secret is changed; or a function of the request that gives them.
        tolerance: how far the signed timestamp may be off our clock, either way, in seconds.
        event_type, resource, version: where they are found: a dotted path into the body, "header:Name", or a
            function of the request; None where the sender gives none.
        version_unit: "seconds" or "milliseconds" if the version is a number since 1970.
        deleted: patterns of the event types that say that a resource is gone, or a function of the delivery.
        settings: `content_encoding`, as for every provider.

    Raises:
        SecretError: for a secret that is empty, blank, damaged or does not begin with `whsec_`.
        SetupError: for another option that could not work.
    """
    require_tolerance(tolerance)
    provider = replace(
        STANDARD_WEBHOOKS,
        event_type=event_type,
        resource=resource,
        version=version,
        version_unit=version_unit,
        deleted=deleted,
    )
    return provider(name, secrets=secrets, tolerance=tolerance, **settings)
