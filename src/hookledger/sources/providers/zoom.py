"""Zoom. https://developers.zoom.us/docs/api/webhooks/"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined
from hookledger.sources.handshakes import zoom_url_validation

zoom = Provider(
    name="zoom",
    title="Zoom",
    documentation="https://developers.zoom.us/docs/api/webhooks/#verify-webhook-events",
    family=Family.TIMED_HMAC,
    schemes=Scheme(
        (Places("x-zm-signature", "x-zm-request-timestamp"),),
        prefixes=("v0=",),
        signed="v0:{timestamp}:{body}",
        tolerance_past=None,
        tolerance_future=None,
    ),
    event_id=joined(
        "event",
        "event_ts",
        "payload.account_id?",
        "payload.object.uuid?",
        "payload.object.id?",
        "payload.object.participant.participant_uuid?",
        "payload.object.participant.user_id?",
    ),
    event_type="event",
    resource=("payload.object.uuid", "payload.object.id"),
    version="event_ts",
    version_unit="milliseconds",
    handshake=zoom_url_validation,
    survives="""No id is documented; the event, its time in milliseconds and what it is about are the same when it is
    sent again.""",
    cautions="Zoom documents no limit for the signed timestamp, and none is set: give tolerance= to have one.",
    unconfirmed=("Whether the header x-zm-trackingid is kept over retries.", "When and how often Zoom tries again."),
)
