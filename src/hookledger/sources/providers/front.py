"""Front, application webhooks. https://dev.frontapp.com/docs/application-webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme
from hookledger.sources.handshakes import front_challenge

front = Provider(
    name="front",
    title="Front",
    documentation="https://dev.frontapp.com/docs/application-webhooks",
    family=Family.TIMED_HMAC,
    schemes=Scheme(
        (Places("X-Front-Signature", "X-Front-Request-Timestamp"),),
        encoding="base64",
        separator=None,
        signed="{timestamp}:{body}",
        timestamp_unit="milliseconds",
    ),
    event_id=("payload.id", "id"),
    event_type="type",
    resource=("payload.conversation.id", "conversation.id"),
    version=("payload.emitted_at", "emitted_at"),
    version_unit="seconds",
    deleted=(),
    handshake=front_challenge,
    survives="The id of the event in the body is the same at each of the three attempts.",
    cautions="""The older rule webhooks, which sign the body alone with SHA-1, are refused. The header of the challenge
    is not signed; it is answered only to a signed request.""",
    unconfirmed=("The fields of the body.", "The limit of five minutes for the signed timestamp."),
)
