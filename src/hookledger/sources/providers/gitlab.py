"""GitLab. https://docs.gitlab.com/user/project/integrations/webhooks/"""

from __future__ import annotations

from dataclasses import replace

from hookledger.sources.describe import Family, Provider, joined, shared_token
from hookledger.sources.providers.standard_webhooks import STANDARD_SCHEME

gitlab = Provider(
    name="gitlab",
    title="GitLab",
    documentation="https://docs.gitlab.com/user/project/integrations/webhooks/",
    family=Family.STANDARD_WEBHOOKS,
    # A secret that begins with whsec_ is a signing token (GitLab 19), any other one a secret token, which is sent in
    # plain text. A request with a signature must verify by it, also where both are configured.
    schemes=(replace(STANDARD_SCHEME, places=STANDARD_SCHEME.places[:1]), shared_token("X-Gitlab-Token")),
    event_id=("header:webhook-id", "header:Idempotency-Key"),
    event_type=(
        joined("object_kind", "object_attributes.action", by="."),
        joined("object_kind", "action?", by="."),
        "event_name",
        "header:X-Gitlab-Event",
    ),
    resource=(
        joined("object_kind", "object_attributes.id"),
        joined("object_kind", "build_id"),  # a job, which has a ref too
        joined("object_kind", "deployment_id"),
        joined("object_kind", "project_id", "ref"),
        joined("object_kind", "id"),  # a release
    ),
    # Pipelines and jobs have no updated_at; while they run, the later arrival wins.
    version=(
        "object_attributes.updated_at",
        "object_attributes.finished_at",
        "object_attributes.created_at",
        "build_finished_at",
        "build_started_at",
        "build_created_at",
        "status_changed_at",
    ),
    deleted=("*.delete",),
    survives="""webhook-id and Idempotency-Key are made once for a delivery and kept when it is sent again, by GitLab or
    by hand. X-Gitlab-Webhook-UUID is new at every attempt.""",
    cautions="With a secret token nothing is signed: whoever sees one request can send others.",
    verified_by=("standard-webhooks V09",),
    unconfirmed=("The tolerance that GitLab expects for signing tokens.",),
)
