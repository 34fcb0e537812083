"""Microsoft Graph: change notifications.

https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from hookledger.errors import Cause, NotVerified, UnreadableBody
from hookledger.http import Headers, Request, Response
from hookledger.sources.describe import EACH_REQUEST, Family, OfItem, Option, Provider, SecretRules, Settings
from hookledger.sources.fetching import OWN_FETCH, Fetch
from hookledger.sources.handshakes import graph_validation_token
from hookledger.sources.items import ItemPaths
from hookledger.sources.keys import FetchedKeys
from hookledger.sources.reading import in_document, read_json
from hookledger.sources.source import Verified
from hookledger.sources.tokens import Token, check_times, read_key_set, require_pyjwt
from hookledger.sources.unverified import malformed, unverified_object

KEYS = "https://login.microsoftonline.com/common/discovery/v2.0/keys"
PUBLISHER = "0bf30f3b-4a52-48df-9a82-234910c4a086"
"""The application that Graph sends change notifications as."""
ISSUERS = ("https://sts.windows.net/{}/", "https://login.microsoftonline.com/{}/v2.0")
KEYS_EXPIRE = 6 * 3600.0  # seconds
MOST_TOKENS = 50
ITEMS = ItemPaths("value")


class GraphVerifier:
    """The `clientState` of each notification; and a token of Microsoft (RS256) for notifications that bear data.

    https://learn.microsoft.com/en-us/graph/change-notifications-with-resource-data#validating-the-authenticity-of-notifications

    Args:
        keys: the client states of the subscriptions.
        settings: with `app_id`, where notifications bear data.
    """

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        self.keys = keys
        self._states = [hashlib.sha256(key).digest() for key in keys]
        self._app_id = settings.options.get("app_id")
        self.needs_network = self._app_id is not None
        if self.needs_network:
            require_pyjwt("Microsoft Graph with app_id=")
        self._fetch = Fetch(("login.microsoftonline.com",), instead=settings.options.get(OWN_FETCH.name))
        self._keys = FetchedKeys(self._load, expiry=KEYS_EXPIRE)

    def verify(self, request: Request, now: float) -> Verified:
        """Return if every notification bears a client state of ours, and those with data the token of Microsoft.

        Raises:
            NotVerified: with the reason; one notification that is not ours refuses them all.
            KeysUnavailable: if the keys of Microsoft cannot be had.
        """
        body = unverified_object(request.body)
        items = body.get("value")
        if not isinstance(items, list) or not items:
            raise NotVerified("the body has no change notifications", Cause.SIGNATURE_MISSING)
        number = {self._which(position, item) for position, item in enumerate(items)}
        if self._app_id is not None:
            tenants = self._tenants(body.get("validationTokens"), now)
            for position, item in enumerate(items):
                tenant = item.get("tenantId")
                if "encryptedContent" in item and not (isinstance(tenant, str) and tenant in tenants):
                    raise NotVerified(
                        f"notification {position} bears data, and no validation token for its tenant",
                        Cause.SIGNATURE_MISSING,
                    )
        return Verified(max(number))

    def sign_body(self, body: bytes, now: float) -> bytes:
        """The body with the client state in every notification.

        Raises:
            UnreadableBody: if it has none.
        """
        document = read_json(body)
        items = [each.part for each in ITEMS.of(document)]
        if not isinstance(document, dict) or not items or not all(isinstance(each, dict) for each in items):
            raise UnreadableBody("the body has no change notifications")
        for item in items:
            item["clientState"] = self.keys[0].decode("utf-8", "surrogateescape")
        return json.dumps(document).encode()

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """The headers of a notification: nothing in them is signed."""
        return Headers([("Content-Type", "application/json")])

    def _which(self, position: int, item: object) -> int:
        state = item.get("clientState") if isinstance(item, dict) else None
        if not isinstance(state, str):
            raise NotVerified(f"notification {position} has no clientState", Cause.SIGNATURE_MISSING)
        digest = hashlib.sha256(state.encode("utf-8", "surrogatepass")).digest()
        for number, wanted in enumerate(self._states):
            if hmac.compare_digest(digest, wanted):
                return number
        raise NotVerified(f"notification {position} has another clientState than secrets=", Cause.NO_MATCH)

    def _tenants(self, tokens: object, now: float) -> set[str]:
        """The tenants that there are tokens for; every one of the tokens must be good."""
        if tokens is None:
            return set()
        if not isinstance(tokens, list) or len(tokens) > MOST_TOKENS or not all(isinstance(t, str) for t in tokens):
            raise malformed("the field validationTokens of the body is no list of tokens")
        return {self._tenant(Token(each, "RS256"), now) for each in tokens}

    def _tenant(self, token: Token, now: float) -> str:
        claims = token.claims(self._keys.get(token.key_id))
        tenant = claims.get("tid")
        if not isinstance(tenant, str) or claims.get("iss") not in [each.format(tenant) for each in ISSUERS]:
            raise NotVerified("a validation token was not issued by Microsoft for a tenant", Cause.KEY_NOT_TRUSTED)
        if claims.get("aud") != self._app_id:
            raise NotVerified("a validation token is for another application than app_id=", Cause.UNKNOWN_ACCOUNT)
        if PUBLISHER not in (claims.get("appid"), claims.get("azp")):
            raise NotVerified("a validation token is not that of Microsoft Graph", Cause.KEY_NOT_TRUSTED)
        check_times(claims, now)
        return tenant

    def _load(self, key_id: str) -> Mapping[str, Any]:
        return read_key_set(self._fetch(KEYS), "RS256")


def _identity(item: Any) -> str | None:
    """id, else subscription, resource, kind of change and etag"""
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("id"), str):
        return str(item["id"])
    data = item.get("resourceData")
    etag = data.get("@odata.etag") if isinstance(data, dict) else None
    parts = [item.get("subscriptionId"), item.get("resource"), item.get("changeType"), etag]
    if not all(isinstance(part, str) and part for part in parts):
        return None
    return "/".join(str(part).replace("%", "%25").replace("/", "%2F") for part in parts)


def _type(item: Any) -> Any:
    """changeType or lifecycleEvent"""
    return in_document(item, ("changeType",)) or in_document(item, ("lifecycleEvent",))


microsoft_graph = Provider(
    name="microsoft-graph",
    title="Microsoft Graph",
    documentation="https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks",
    family=Family.TOKEN,
    verifier=GraphVerifier,
    covers_body=False,
    secret=SecretRules(pattern=r".{1,128}", pattern_says="the clientState of the subscription, 128 characters at most"),
    options=(
        Option("app_id", "the id of your application, if the subscriptions include resource data"),
        OWN_FETCH,
    ),
    items="value",
    event_id=(OfItem(_identity), EACH_REQUEST),
    event_type=OfItem(_type),
    resource="resource",
    unverified_handshake=graph_validation_token,
    accepted=Response(202),
    deleted=("deleted",),
    survives="""The id of a notification, or else the etag of what it is about together with the subscription and the
    kind of change, is the same when Graph sends it again. Those with neither, as of drives, say only that something
    has changed again: each of them is a new event, a repeated one too.""",
    cautions="""Nothing is signed but by the token of notifications with data, which says nothing of the body: whoever
    sees one request can send others with its clientState. Notifications have no version: read the resource anew, or
    ask for the delta. All notifications of a request are refused if one has a clientState that is not in secrets=:
    list there those of all subscriptions of this URL. What is encrypted is left to the handler.""",
    unconfirmed=("Graph waits 3 seconds for an answer, or 10.",),
)
