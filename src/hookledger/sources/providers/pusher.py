"""Pusher Channels. https://pusher.com/docs/channels/server_api/webhooks/"""

from __future__ import annotations

from hookledger.sources.describe import POSITION, Family, Places, Provider, Scheme, joined

pusher = Provider(
    name="pusher",
    title="Pusher Channels",
    documentation="https://pusher.com/docs/channels/server_api/webhooks/",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("X-Pusher-Signature"),), separator=None),
    items="events",
    event_id=joined("root:time_ms", POSITION, "name", "channel"),
    event_type="name",
    resource="channel",
    version="root:time_ms",
    version_unit="milliseconds",
    deleted=(),
    survives="""No id is sent; the time of the request, which is signed, and the place of an event in its list tell
    events apart, and are the same when the same body is sent again.""",
    cautions="""time_ms is a part of the id, so that a request that somebody sends again is a repetition; no limit is
    set for its age. X-Pusher-Key, which names the app's key, is not signed: with several keys give all their secrets,
    or a function.""",
    unconfirmed=("That time_ms is the same when a request is sent again.",),
)
