"""Postmark. https://postmarkapp.com/developer/webhooks/webhooks-overview"""

from __future__ import annotations

from typing import Any

from hookledger.sources.describe import Family, OfItem, Provider, SecretRules, basic, joined


def _kind(body: Any) -> str | None:
    """RecordType, or Inbound."""
    if not isinstance(body, dict):
        return None
    kind = body.get("RecordType")
    if kind is None and "FromFull" in body:
        return "Inbound"  # a received message bears no record type
    return kind if isinstance(kind, str) else None


TIMES = ("ReceivedAt", "DeliveredAt", "BouncedAt", "ChangedAt")

postmark = Provider(
    name="postmark",
    title="Postmark",
    documentation="https://postmarkapp.com/developer/webhooks/webhooks-overview",
    family=Family.TOKEN,
    schemes=basic(),
    secret=SecretRules(pattern=r"[^:]+:.+", pattern_says="user:password, as in the URL that Postmark has"),
    event_id=(
        joined(
            "RecordType", "MessageID", "Recipient?", "Email?", *(f"{each}?" for each in TIMES), "ID?", "OriginalLink?"
        ),
        "MessageID",
    ),
    event_type=OfItem(_kind),
    # One message may go to several people.
    resource=(joined("MessageID", "Recipient"), joined("MessageID", "Email"), "MessageID"),
    version=TIMES,
    deleted=(),
    survives="""Postmark sends no id of an event. What happened to which message, of whom and when is the same at every
    attempt; a received message is known by its MessageID.""",
    cautions="""Nothing is signed: whoever sees one request can send others. The secret is the user and the password of
    Basic authentication; headers of your own that Postmark can add are not looked at.""",
    unconfirmed=(
        "Everything but the fields of the bodies: the official page was not read.",
        "Ten retries from one minute to six hours for bounces and received messages, fewer for the others.",
        "That 403 ends the retries.",
    ),
)
