"""Intercom. https://developers.intercom.com/docs/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

intercom = Provider(
    name="intercom",
    title="Intercom",
    documentation="https://developers.intercom.com/docs/webhooks",
    family=Family.BODY_HMAC,
    # The key is the client secret of the app. The same header holds SHA-256 with other senders.
    schemes=Scheme((Places("X-Hub-Signature"),), algorithm="hmac-sha1", prefixes=("sha1=",), separator=None),
    event_id="id",
    event_type="topic",
    resource=joined("data.item.type", "data.item.id"),
    version="created_at",
    version_unit="seconds",
    survives="""The notification's id is the same at every attempt; delivery_attempts counts them and first_sent_at is
    the time of the first.""",
    cautions="""No timestamp is signed, and SHA-1 is all that Intercom offers. `created_at` has whole seconds: on equal
    versions the later arrival wins.""",
    unconfirmed=("The deadline of 5 seconds.", "One retry after a minute.", "That an answer of 410 switches it off."),
)
