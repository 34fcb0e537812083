"""PagerDuty, webhooks of version 3. https://developer.pagerduty.com/docs/webhooks-overview"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

pagerduty = Provider(
    name="pagerduty",
    title="PagerDuty",
    documentation="https://developer.pagerduty.com/docs/verifying-webhook-signatures",
    family=Family.BODY_HMAC,
    # The secret looks like base64 and is used as the text that it is.
    schemes=Scheme((Places("X-PagerDuty-Signature"),), prefixes=("v1=",)),
    event_id="event.id",
    event_type="event.event_type",
    resource=joined("event.resource_type", "event.data.id"),
    version="event.occurred_at",
    survives="event.id names the event and is the same at every attempt.",
    cautions="""No timestamp is signed. PagerDuty does not come again after an answer of 4xx: what was refused with a
    wrong secret is lost.""",
    verified_by=("go-pagerduty V35",),
    unconfirmed=("The test event pagey.ping.",),
)
