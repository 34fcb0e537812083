"""Telnyx. https://developers.telnyx.com/docs/development/api-fundamentals/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

telnyx = Provider(
    name="telnyx",
    title="Telnyx",
    documentation="https://developers.telnyx.com/docs/development/api-fundamentals/webhooks",
    family=Family.PUBLIC_KEY,
    schemes=Scheme(
        (Places("telnyx-signature-ed25519", "telnyx-timestamp"),),
        algorithm="ed25519",
        encoding="base64",
        separator=None,
        signed="{timestamp}|{body}",
        key_encoding="base64",
    ),
    event_id="data.id",
    event_type="data.event_type",
    resource=("data.payload.call_session_id", "data.payload.id"),
    version="data.occurred_at",
    deleted=(),
    survives="data.id names the event; Telnyx says to expect it more than once, also at the failover URL.",
    cautions="The secret is the public key of the account.",
    unconfirmed=("The fields of data.payload.", "The limit of five minutes for the signed timestamp."),
)
