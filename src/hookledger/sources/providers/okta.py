"""Okta event hooks. https://developer.okta.com/docs/concepts/event-hooks/"""

from __future__ import annotations

from hookledger.http import Response
from hookledger.sources.describe import Family, Provider, joined, shared_token
from hookledger.sources.handshakes import okta_verification

okta = Provider(
    name="okta",
    title="Okta",
    documentation="https://developer.okta.com/docs/concepts/event-hooks/",
    family=Family.TOKEN,
    # The whole value of the header, as it was typed in at Okta.
    schemes=shared_token("Authorization"),
    items="data.events",
    event_id="uuid",
    event_type="eventType",
    resource=joined("target.0.type", "target.0.id"),
    version="published",
    deleted=("*.lifecycle.delete", "*.lifecycle.delete.completed"),
    probe=okta_verification,
    accepted=Response(204),
    survives="""Each item has its own uuid, which is the same when the request is sent again; eventId is that of the
    request.""",
    cautions="""Nothing is signed: whoever sees one request can send others. Okta tries only once again, and never after
    an answer of 4xx: fetch what was missed from its System Log.""",
)
