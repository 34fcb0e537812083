"""Buildkite Pipelines. https://buildkite.com/docs/apis/webhooks/pipelines"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

buildkite = Provider(
    name="buildkite",
    title="Buildkite",
    documentation="https://buildkite.com/docs/apis/webhooks/pipelines",
    family=Family.TIMED_HMAC,
    schemes=Scheme(
        (Places("X-Buildkite-Signature"),),
        prefixes=("signature=",),
        signed="{timestamp}.{body}",
        timestamp_item="timestamp=",
    ),
    event_id=None,
    event_type="event",
    resource=("job.id", "build.id", "agent.id"),
    version=None,
    deleted=(),
    survives="No id is sent: an event is known by the bytes of its body.",
    cautions="""Choose "Send an HMAC signature" for the token of the webhook: one that is sent as X-Buildkite-Token is
    refused. Two events with the same bytes are taken for one. Nothing orders the states of a build: fetch it, or give
    the handler a version= function.""",
    unconfirmed=("When and how often Buildkite tries again.", "The limit of five minutes for the signed timestamp."),
)
