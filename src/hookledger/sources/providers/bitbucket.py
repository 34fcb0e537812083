"""Bitbucket Cloud and Data Center. https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/"""

from __future__ import annotations

from typing import Any

from hookledger.sources.describe import Family, OfItem, Places, Provider, Scheme
from hookledger.sources.reading import in_document


def _subject(body: Any) -> str | None:
    """pull request, issue or repository."""
    repository = in_document(body, ("repository", "uuid"))
    for kind in ("pullrequest", "issue"):  # Cloud
        number = in_document(body, (kind, "id"))
        if number is not None:
            return f"{kind}/{repository}/{number}"
    number = in_document(body, ("pullRequest", "id"))  # Data Center
    if number is not None:
        return f"pullrequest/{in_document(body, ('pullRequest', 'toRef', 'repository', 'id'))}/{number}"
    repository = repository or in_document(body, ("repository", "id"))
    return None if repository is None else f"repository/{repository}"


bitbucket = Provider(
    name="bitbucket",
    title="Bitbucket",
    documentation="https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/",
    family=Family.BODY_HMAC,
    # The header that GitHub used for SHA-1; the prefix tells the method.
    schemes=Scheme((Places("X-Hub-Signature"),), prefixes=("sha256=",)),
    event_id=("header:X-Request-UUID", "header:X-Request-Id"),
    event_type=("header:X-Event-Key", "eventKey"),
    resource=OfItem(_subject),
    version=("pullrequest.updated_on", "issue.updated_on", "pullRequest.updatedDate"),
    version_unit="milliseconds",
    deleted=("repo:deleted", "pr:deleted"),
    survives="""X-Request-UUID (Data Center: X-Request-Id) names the request, and X-Attempt-Number counts its attempts.
    X-Hook-UUID names the webhook and is the same for all its events.""",
    cautions="""The headers are not signed: somebody who holds a signed body can send it under another id or event key.
    Bitbucket signs only if the webhook has a secret. It sends again at most twice, on 5xx and timeouts, and leaves out
    bodies of more than 256 KB. Pushes have no version.""",
    verified_by=("Atlassian docs V07",),
    unconfirmed=("That X-Request-UUID is the same at every attempt.",),
)
