"""Cal.com. https://cal.com/docs/developing/guides/automation/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

cal_com = Provider(
    name="cal-com",
    title="Cal.com",
    documentation="https://cal.com/docs/developing/guides/automation/webhooks",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("X-Cal-Signature-256"),), separator=None),
    event_id=joined("triggerEvent", "payload.uid", "createdAt"),
    event_type="triggerEvent",
    resource="payload.uid",
    version="createdAt",
    deleted=(),
    survives="No id is sent; the trigger, the booking and the time in the body tell events apart.",
    cautions="""No timestamp is signed. A webhook with a payload template of your own needs triggerEvent, createdAt and
    payload.uid in it.""",
    unconfirmed=("That createdAt is the same when an event is sent again.", "When and how often Cal.com tries again."),
)
