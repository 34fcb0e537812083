"""Webflow. https://developers.webflow.com/data/docs/working-with-webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

webflow = Provider(
    name="webflow",
    title="Webflow",
    documentation="https://developers.webflow.com/data/docs/working-with-webhooks",
    family=Family.TIMED_HMAC,
    schemes=Scheme(
        (Places("x-webflow-signature", "x-webflow-timestamp"),),
        separator=None,
        signed="{timestamp}:{body}",
        timestamp_unit="milliseconds",
    ),
    event_id=None,
    event_type="triggerType",
    resource=("payload.id", "payload.pageId", "payload.orderId"),
    version=("payload.lastUpdated", "payload.lastPublished", "payload.submittedAt"),
    deleted=("*_deleted",),
    survives="No id is sent: an event is known by the bytes of its body, which are the same when it is sent again.",
    cautions="""Two events with the same bytes, which have no time in them, are taken for one. Webhooks that were made
    in the site's settings or with a site token are not signed, and refused: make them with an OAuth app.""",
    unconfirmed=("The fields of the body.",),
)
