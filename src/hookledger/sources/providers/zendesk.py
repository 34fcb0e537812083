"""Zendesk. https://developer.zendesk.com/documentation/webhooks/"""

from __future__ import annotations

from typing import Any

from hookledger.sources.describe import Family, OfItem, Places, Provider, Scheme, SecretRules
from hookledger.sources.reading import in_document

EVENT = "zen:event-type:"
TEST_SECRET = "dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ=="  # noqa: S105
"""Signs requests that are sent to try a webhook before it is saved. https://developer.zendesk.com/documentation/webhooks/verifying/"""


def _of_event(name: str) -> OfItem:
    """A field of an event's body. The body of a trigger's webhook is written by a user: an `id` in it may well be the
    ticket's, the same for all that happens to the ticket, and its `subject` a line of text."""

    def read(body: Any) -> Any:
        kind = in_document(body, ("type",))
        return body.get(name) if isinstance(kind, str) and kind.startswith(EVENT) else None

    read.__doc__ = f"{name} of an event"
    return OfItem(read)


zendesk = Provider(
    name="zendesk",
    title="Zendesk",
    documentation="https://developer.zendesk.com/documentation/webhooks/verifying/",
    family=Family.TIMED_HMAC,
    schemes=Scheme(
        (Places("X-Zendesk-Webhook-Signature", "X-Zendesk-Webhook-Signature-Timestamp"),),
        encoding="base64",
        separator=None,
        signed="{timestamp}{body}",
        timestamp_unit="iso8601",
        tolerance_past=None,
        tolerance_future=None,
    ),
    secret=SecretRules(refused=(TEST_SECRET,)),
    format="json-or-form",
    event_id=(_of_event("id"), "header:X-Zendesk-Webhook-Invocation-Id"),
    event_type="type",
    resource=_of_event("subject"),
    version=_of_event("time"),
    deleted=(f"{EVENT}*.deleted", f"{EVENT}*.soft_deleted", f"{EVENT}*.permanently_deleted"),
    survives="""The id in an event's body is signed and names the event. The webhooks of triggers and automations have
    bodies that a user wrote, so theirs is the header X-Zendesk-Webhook-Invocation-Id, which names the call.""",
    cautions="""The header with the id is not signed. Bodies of triggers and automations have no resource and no
    version: give the handler functions for them. Zendesk documents no limit for the signed timestamp, and none is set:
    give tolerance= to have one.""",
    unconfirmed=(
        "That X-Zendesk-Webhook-Invocation-Id is the same at every attempt.",
        "Three retries on 409, and on 429 and 503 with Retry-After below a minute; 12 seconds for an answer.",
    ),
)
