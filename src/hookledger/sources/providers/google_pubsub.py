"""Google Cloud Pub/Sub: push subscriptions that authenticate.

https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookledger.errors import Cause, NotVerified
from hookledger.http import Request, Response
from hookledger.sources.describe import Family, Option, Provider, Settings
from hookledger.sources.fetching import OWN_FETCH, Fetch
from hookledger.sources.keys import FetchedKeys
from hookledger.sources.source import Verified
from hookledger.sources.tokens import Token, check_times, read_key_set, require_pyjwt

KEYS = "https://www.googleapis.com/oauth2/v3/certs"
ISSUERS = ("https://accounts.google.com", "accounts.google.com")
PREFIX = "bearer "
KEYS_EXPIRE = 6 * 3600.0  # seconds


class PubsubVerifier:
    """A token of Google (OpenID Connect, RS256) for an audience and a service account.

    Args:
        keys: none.
        settings: with `audience` and `service_account`.
    """

    needs_network = True

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        require_pyjwt("Google Pub/Sub")
        self._audience = settings.options["audience"]
        self._account = settings.options["service_account"]
        self._fetch = Fetch(("www.googleapis.com",), instead=settings.options.get(OWN_FETCH.name))
        self._keys = FetchedKeys(self._load, expiry=KEYS_EXPIRE)

    def verify(self, request: Request, now: float) -> Verified:
        """Return if Google made the token for this subscription, and it has not expired.

        Raises:
            NotVerified: with the reason.
            KeysUnavailable: if the keys cannot be had.
        """
        given = request.headers.get("Authorization")
        if given is None or not given.lower().startswith(PREFIX):
            raise NotVerified(
                "the header Authorization holds no token: let the push subscription authenticate",
                Cause.SIGNATURE_MISSING,
                place="Authorization",
            )
        token = Token(given[len(PREFIX) :].strip(" "), "RS256")
        claims = token.claims(self._keys.get(token.key_id))
        if claims.get("iss") not in ISSUERS:
            raise NotVerified("the token was not issued by Google", Cause.KEY_NOT_TRUSTED)
        if claims.get("aud") != self._audience:
            raise NotVerified(
                "the token is for another audience: audience= must be that of the push subscription, which is the URL "
                "of its endpoint if none was set",
                Cause.UNKNOWN_ACCOUNT,
            )
        if claims.get("email") != self._account or claims.get("email_verified") is not True:
            raise NotVerified("the token is of another service account than service_account=", Cause.UNKNOWN_ACCOUNT)
        check_times(claims, now)
        return Verified()

    def _load(self, key_id: str) -> Mapping[str, Any]:
        return read_key_set(self._fetch(KEYS), "RS256")


google_pubsub = Provider(
    name="google-pubsub",
    title="Google Cloud Pub/Sub",
    documentation="https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions",
    family=Family.FETCHED_KEY,
    verifier=PubsubVerifier,
    takes_secrets=False,
    covers_body=False,
    options=(
        Option("audience", "the audience of the push subscription; its endpoint's URL if none was set", required=True),
        Option("service_account", "the e-mail address of the service account that it uses", required=True),
        OWN_FETCH,
    ),
    event_id="message.messageId",
    event_type="message.attributes.eventType",
    resource="message.orderingKey",
    version="message.publishTime",
    accepted=Response(204),
    deleted=(),
    survives="message.messageId is given once, when the message is published, and stays when it is pushed again.",
    cautions="""The token says who sends, and nothing of the body: whoever sees one request can send any message with
    its token, for an hour. The data of a message is base64 in `data["message"]["data"]`. Without an ordering key a
    message has no resource. Messages must come wrapped, as they do if nothing else was set.""",
    unconfirmed=("102, 200, 201, 202 and 204 acknowledge a message; anything else has it pushed again.",),
)
