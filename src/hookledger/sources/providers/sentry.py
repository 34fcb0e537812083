"""Sentry, webhooks of integrations. https://docs.sentry.io/organization/integrations/integration-platform/webhooks/"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

sentry = Provider(
    name="sentry",
    title="Sentry",
    documentation="https://docs.sentry.io/organization/integrations/integration-platform/webhooks/",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("Sentry-Hook-Signature"),), separator=None),
    event_id="header:Request-ID",
    event_type=joined("header:Sentry-Hook-Resource", "action", by="."),
    resource=("data.issue.id", "data.event.issue_id", "data.error.issue_id", "data.metric_alert.id"),
    version=None,
    deleted=(),
    survives="""The body has no id, and an issue that is resolved twice may give the same bytes twice; Request-ID tells
    the two apart.""",
    cautions="""The headers are not signed: somebody who holds a signed body can send it under another id or kind.
    Nothing orders the states of an issue: fetch it, or give the handler a version= function.""",
    unconfirmed=(
        "That Request-ID is the same when a request is sent again.",
        "That Sentry always signs the bytes that it sends.",
        "The deadline of one second.",
    ),
)
