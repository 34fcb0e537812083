"""Standard Webhooks, which Svix, Clerk, Resend, OpenAI, GitLab and others send. https://www.standardwebhooks.com"""

from __future__ import annotations

from hookledger.sources._old.fields import Deleted, EventFields, Field, deletion
from hookledger.sources._old.reading import VersionUnit
from hookledger.sources._old.scheme import (
    DEFAULT_TOLERANCE,
    HeaderNames,
    Scheme,
    read_template,
)
from hookledger.sources._old.scheme_verifier import SchemeVerifier
from hookledger.sources._old.secrets import Secrets, read_secrets
from hookledger.sources.source import Source


def standard_webhooks_scheme(tolerance: float = DEFAULT_TOLERANCE) -> Scheme:
    """`webhook-signature: v1,<base64> v1,<base64>`; other versions of a signature are skipped.

    https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
    """
    return Scheme(
        headers=(
            HeaderNames("webhook-signature", "webhook-timestamp", "webhook-id"),
            HeaderNames("svix-signature", "svix-timestamp", "svix-id"),
        ),
        encoding="base64",
        prefixes=("v1,",),
        separator=" ",
        template=read_template("{id}.{timestamp}.{body}"),
        tolerance_past=tolerance,
        tolerance_future=tolerance,
        key_encoding="whsec",
    )


def standard_webhooks(
    name: str = "standard-webhooks",
    *,
    secrets: Secrets,
    tolerance: float = DEFAULT_TOLERANCE,
    event_type: Field | None = "type",
    resource: Field | None = "data.id",
    version: Field | None = "timestamp",
    version_unit: VersionUnit | None = None,
    deleted: Deleted = ("*.deleted",),
) -> Source:
    """Events of any sender that follows Standard Webhooks, with the headers `webhook-*` or `svix-*`.

    The event id is the header `webhook-id`, which is signed and stays the same at every attempt.

    Args:
        name: of the source.
        secrets: each begins with `whsec_`; several while a secret is changed.
        tolerance: how far the signed timestamp may be off our clock, either way, in seconds.
        event_type, resource, version: where they are found: a dotted path into the body, "header:Name", or a
            function of the request; None where the sender gives none.
        version_unit: "seconds" or "milliseconds" if the version is a number since 1970.
        deleted: patterns of the event types that say that a resource is gone, or a function of the delivery.

    Raises:
        SecretError: for a secret that is empty, blank, damaged or does not begin with `whsec_`.
        SetupError: for another option that could not work.
    """
    scheme = standard_webhooks_scheme(tolerance)
    verifier = SchemeVerifier(scheme, read_secrets(name, secrets, scheme.key_encoding))
    fields = EventFields(
        "json",
        # Read by the same choice of headers that was verified, else an unsigned id could take its place.
        event_id=scheme.identifier,
        event_type=event_type,
        resource=resource,
        version=version,
        version_unit=version_unit,
    )
    return Source(
        name=name,
        provider="standard-webhooks",
        verifier=verifier,
        read=fields.read,
        document=fields.document,
        deleted=deletion(deleted),
        sign=verifier.sign,
        has_resource=resource is not None,
        has_version=version is not None,
    )
