"""Stripe. https://docs.stripe.com/webhooks"""

from __future__ import annotations

from typing import Any

from hookledger.delivery import Delivery, Event
from hookledger.errors import UnreadableBody
from hookledger.http import Request
from hookledger.sources._old.reading import event_type_of, in_document, moment, read_json
from hookledger.sources._old.scheme import (
    DEFAULT_TOLERANCE,
    HeaderNames,
    Scheme,
    read_template,
)
from hookledger.sources._old.scheme_verifier import SchemeVerifier
from hookledger.sources._old.secrets import Secrets, read_secrets
from hookledger.sources.source import Source
from hookledger.storable import identifier

API_KEY_PREFIXES = ("sk_", "pk_", "rk_")


def stripe_scheme(tolerance: float = DEFAULT_TOLERANCE) -> Scheme:
    """`Stripe-Signature: t=<unix seconds>,v1=<hex>[,v1=<hex>]`; other schemes, such as v0, are skipped.

    https://docs.stripe.com/webhooks#verify-manually
    """
    return Scheme(
        headers=(HeaderNames("Stripe-Signature"),),
        prefixes=("v1=",),
        template=read_template("{timestamp}.{body}"),
        timestamp_item="t=",
        tolerance_past=tolerance,
        tolerance_future=tolerance,
    )


def stripe(name: str = "stripe", *, secrets: Secrets, tolerance: float = DEFAULT_TOLERANCE) -> Source:
    """Events of Stripe, of the API v1 and thin events of v2.

    The event id is the body's `id`, the type its `type`; the resource is the id of `data.object` (v2: of
    `related_object`), the version the time `created`. That time has whole seconds, and on equal versions the
    later arrival wins. An event is a deletion if its type ends with `.deleted`.

    Args:
        name: of the source.
        secrets: of the endpoint, as Stripe shows them, with `whsec_`; several while a secret is rolled.
        tolerance: how far the signed timestamp may be off our clock, either way, in seconds.

    Raises:
        SecretError: for a secret that is empty, blank, wrongly spelled, or an API key.
        SetupError: for a tolerance that is not above 0.
    """
    verifier = SchemeVerifier(stripe_scheme(tolerance), read_secrets(name, secrets, foreign_prefixes=API_KEY_PREFIXES))
    return Source(
        name=name,
        provider="stripe",
        verifier=verifier,
        read=_read,
        document=_document,
        deleted=_deleted,
        sign=verifier.sign,
    )


def _read(request: Request) -> tuple[Event]:
    document = read_json(request.body)
    if not isinstance(document, dict):
        raise UnreadableBody("the body is JSON, but not the object that an event of Stripe is")
    resource = identifier(in_document(document, ("data", "object", "id")))
    if resource is None:
        resource = identifier(in_document(document, ("related_object", "id")))
    event = Event(
        event_id=identifier(document.get("id")),
        event_type=event_type_of(document.get("type")),
        resource=resource,
        version=moment(document.get("created")),
    )
    return (event,)


def _document(delivery: Delivery) -> Any:
    return read_json(delivery.body)


def _deleted(delivery: Delivery) -> bool:
    return delivery.event_type.endswith(".deleted")
