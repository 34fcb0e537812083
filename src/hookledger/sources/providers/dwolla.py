"""Dwolla. https://developers.dwolla.com/docs/balance/webhooks/process-validate"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

dwolla = Provider(
    name="dwolla",
    title="Dwolla",
    documentation="https://developers.dwolla.com/docs/balance/webhooks/process-validate",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("X-Request-Signature-SHA-256"),), separator=None),
    event_id="id",
    event_type="topic",
    resource="resourceId",
    version="timestamp",
    deleted=("*_removed", "*_deleted"),
    survives="id names the event and is the same at every attempt.",
    cautions="""No timestamp is signed. One request to Dwolla can give several events, such as transfer_created and
    customer_transfer_created. Events name what changed and do not hold it: fetch it.""",
    unconfirmed=("When and how often Dwolla tries again.",),
)
