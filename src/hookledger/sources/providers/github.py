"""GitHub. https://docs.github.com/en/webhooks"""

from __future__ import annotations

from typing import Any

from hookledger.delivery import Delivery, Event
from hookledger.errors import UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources.accounts import SecretsOf
from hookledger.sources.describe import Family, Places, Provider, Reads, Scheme, joined
from hookledger.sources.reading import is_form, read_form, read_json
from hookledger.sources.secrets import Secrets
from hookledger.sources.source import Source
from hookledger.storable import identifier, label

EVENT_HEADER = "X-GitHub-Event"
DELIVERY_HEADER = "X-GitHub-Delivery"

EMBEDDED = {
    "issues": ("issue", "issue"),
    "issue_comment": ("issue_comment", "comment"),
    "commit_comment": ("commit_comment", "comment"),
    "discussion_comment": ("discussion_comment", "comment"),
    "pull_request_review": ("pull_request_review", "review"),
    "pull_request_review_comment": ("pull_request_review_comment", "comment"),
    "pull_request_target": ("pull_request", "pull_request"),
    "branch_protection_rule": ("branch_protection_rule", "rule"),
    "code_scanning_alert": ("code_scanning_alert", "alert"),
    "dependabot_alert": ("dependabot_alert", "alert"),
    "secret_scanning_alert": ("secret_scanning_alert", "alert"),
    "fork": ("repository", "forkee"),
}
"""Kind of resource and key in the body, by event, where they are not both the event's name.
https://docs.github.com/en/webhooks/webhook-events-and-payloads"""


def github(name: str = "github", *, secrets: Secrets | SecretsOf, **settings: Any) -> Source:
    """Events of a repository, an organization or an app of GitHub, sent as JSON or as a form.

    The event id is the header `X-GitHub-Delivery`, which stays the same when a delivery is sent again. GitHub
    does not sign its headers: somebody who holds a signed body can send it under another id or event name.
    The type is the header `X-GitHub-Event` and, after a dot, the body's `action`: "pull_request.opened", "push",
    "ping". The resource is the object that the event is about, such as "pull_request/123", and its version the
    `updated_at` of that object, where it has them. An event is a deletion if its action is `deleted`.

    Args:
        name: of the source.
        secrets: of the webhook, as they were typed in at GitHub; old and new one while it is changed; or a function
            of the request that gives them.
        settings: `content_encoding`, as for every provider.

    Raises:
        SecretError: for a secret that is empty, blank or wrongly spelled.
        SetupError: for a setting that GitHub has no use for, such as `tolerance`.
    """
    return GITHUB(name, secrets=secrets, **settings)


def _read(request: Request) -> tuple[Event]:
    headers = request.headers
    event_id = identifier(headers.get(DELIVERY_HEADER))
    event = (headers.get(EVENT_HEADER) or "").strip()
    try:
        document = _read_body(request.body, headers)
    except UnreadableBody as error:
        return (Event(event_id, label(event), unreadable=str(error)),)
    if not isinstance(document, dict):
        return (Event(event_id, label(event), unreadable="the body is JSON, but not an object"),)
    action = document.get("action")
    named = f"{event}.{action}" if isinstance(action, str) and action else event
    resource, version = _embedded(event, document)
    return (Event(event_id, label(named), resource, version),)


def _embedded(event: str, document: dict[str, Any]) -> tuple[str | None, Any]:
    """The resource and the version of the object that an event is about."""
    kind, key = EMBEDDED.get(event, (event, event))
    found = document.get(key)
    if not isinstance(found, dict):
        return None, None
    number = identifier(found.get("id"))
    if number is None:
        # Alerts are numbered within their repository.
        repository = document.get("repository")
        within = identifier(repository.get("id")) if isinstance(repository, dict) else None
        number = identifier(found.get("number"))
        if within is None or number is None:
            return None, None
        number = f"{within}/{number}"
    return identifier(f"{kind}/{number}"), found.get("updated_at")


def _read_body(body: bytes, headers: Headers) -> Any:
    if not is_form(headers):
        return read_json(body)
    payload = read_form(body).get("payload")
    if not payload:
        raise UnreadableBody("the body is a form without the field 'payload'")
    return read_json(payload[0].encode("utf-8", "surrogateescape"))


def _document(delivery: Delivery) -> Any:
    return _read_body(delivery.body, delivery.headers)


def _guess_event(body: bytes) -> str:
    """The event that a body is of, by the object in it; only for requests that we sign ourselves."""
    try:
        document = read_json(body)
    except UnreadableBody:
        return "ping"
    if not isinstance(document, dict) or "zen" in document:
        return "ping"
    if "comment" in document:
        return "issue_comment" if "issue" in document else "commit_comment"
    if "issue" in document:
        return "issues"
    for event in ("pull_request", "release", "workflow_run", "check_run", "deployment", "discussion", "label"):
        if event in document:
            return event
    return "push" if "ref" in document else "repository"


GITHUB = Provider(
    name="github",
    title="GitHub",
    documentation="https://docs.github.com/en/webhooks",
    family=Family.BODY_HMAC,
    # https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    schemes=Scheme((Places("X-Hub-Signature-256"),), prefixes=("sha256=",)),
    event_id=f"header:{DELIVERY_HEADER}",
    event_type=joined(f"header:{EVENT_HEADER}", "action?", by="."),
    reads=Reads(_read, _document),
    resource="<object>.id",
    version="<object>.updated_at",
    deleted=("*.deleted",),
    guess_type=_guess_event,
    survives="X-GitHub-Delivery is the same when a delivery is sent again by hand; GitHub itself sends nothing again.",
    cautions="The headers are not signed: somebody who holds a signed body can send it under another id or event name.",
    unconfirmed=("That bodies end at 25 MB, and that a delivery can be sent again for three days.",),
    verified_by=("GitHub docs V01", "octokit V02, V03", "go-github V05", "webhookx V37"),
)
