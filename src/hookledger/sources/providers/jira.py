"""Jira Cloud, webhooks with a secret. https://developer.atlassian.com/cloud/jira/platform/webhooks/"""

from __future__ import annotations

from typing import Any

from hookledger.delivery import Delivery
from hookledger.sources.describe import Family, OfItem, Places, Provider, Scheme
from hookledger.sources.reading import in_document

KINDS = {"issuelink": ("issueLink", "id"), "user": ("user", "accountId")}
"""Where the object of an event is, by the first word of its name, if not at that word."""


def _subject(body: Any) -> str | None:
    """the object that the event is named after."""
    event = in_document(body, ("webhookEvent",))
    if not isinstance(event, str):
        return None
    # "jira:issue_updated", "comment_created": the body of a comment's event holds its issue too.
    kind = event.removeprefix("jira:").partition("_")[0]
    number = in_document(body, KINDS.get(kind, (kind, "id")))
    return f"{kind}/{number}" if isinstance(number, int | str) and number else None


def _is_deletion(delivery: Delivery) -> bool:
    # project_restored_deleted brings a project back.
    return delivery.event_type.endswith("_deleted") and "restored" not in delivery.event_type


jira = Provider(
    name="jira",
    title="Jira",
    documentation="https://developer.atlassian.com/cloud/jira/platform/webhooks/",
    family=Family.BODY_HMAC,
    # The prefix tells the method; Jira says that it may come to use another.
    schemes=Scheme((Places("X-Hub-Signature"),), prefixes=("sha256=",)),
    event_id="header:X-Atlassian-Webhook-Identifier",
    event_type="webhookEvent",
    resource=OfItem(_subject),
    version="timestamp",
    version_unit="milliseconds",
    deleted=_is_deletion,
    survives="""X-Atlassian-Webhook-Identifier is unique within a tenant and the same at every attempt, of which
    X-Atlassian-Webhook-Retry keeps count.""",
    cautions="""The header with the id is not signed. Only webhooks that were made by an administrator or through
    /rest/webhooks/1.0/webhook, and with a secret, are signed in this way; those of OAuth and Connect apps are not. A
    webhook that is set to exclude the body sends nothing that could be read.""",
    verified_by=("Atlassian docs V07",),
    unconfirmed=("Up to five retries, 5 to 15 minutes apart, on 408, 409, 425, 429, 5xx and timeouts.",),
)
