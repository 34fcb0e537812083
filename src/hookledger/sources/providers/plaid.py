"""Plaid: signals of linked accounts. https://plaid.com/docs/api/webhooks/webhook-verification/"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from hookledger.errors import Cause, KeysUnavailable, NotVerified, SetupError, UnreadableBody
from hookledger.http import Request
from hookledger.sources.describe import EACH_REQUEST, Family, Option, Provider, Settings, joined
from hookledger.sources.fetching import OWN_FETCH, Fetch
from hookledger.sources.keys import FetchedKeys
from hookledger.sources.reading import read_json
from hookledger.sources.source import Verified
from hookledger.sources.timestamps import DEFAULT_TOLERANCE, check_age
from hookledger.sources.tokens import Token, read_key, require_pyjwt, time_in

SIGNATURE = "Plaid-Verification"
ENVIRONMENTS = ("production", "sandbox")
UNKNOWN_KEY = b"INVALID_WEBHOOK_VERIFICATION_KEY_ID"
JSON_BODY = (("Content-Type", "application/json"),)


class PlaidVerifier:
    """A token (ES256) with the hash of the body, by a key that Plaid's API gives.

    Args:
        keys: none.
        settings: with the credentials of the API.
    """

    needs_network = True

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        require_pyjwt("Plaid")
        options = settings.options
        environment = options.get("environment", ENVIRONMENTS[0])
        if environment not in ENVIRONMENTS:
            raise SetupError(f"environment={environment!r} is not known: use {' or '.join(ENVIRONMENTS)}")
        host = f"{environment}.plaid.com"
        self._url = f"https://{host}/webhook_verification_key/get"
        self._credentials = {"client_id": options["client_id"], "secret": options["api_secret"]}
        self._tolerance = DEFAULT_TOLERANCE if settings.tolerance is None else settings.tolerance
        self._fetch = Fetch((host,), missing=_says_unknown, instead=options.get(OWN_FETCH.name))
        self._keys = FetchedKeys(self._load)

    def verify(self, request: Request, now: float) -> Verified:
        """Return if Plaid signed the body within the tolerance.

        Raises:
            NotVerified: with the reason.
            KeysUnavailable: if the key cannot be had.
        """
        given = request.headers.get(SIGNATURE)
        if given is None:
            raise NotVerified(f"the header {SIGNATURE} is missing", Cause.SIGNATURE_MISSING, place=SIGNATURE)
        token = Token(given, "ES256")
        claims = token.claims(self._keys.get(token.key_id))
        wanted = claims.get("request_body_sha256")
        digest = hashlib.sha256(request.body).hexdigest()
        if not isinstance(wanted, str) or not hmac.compare_digest(wanted.encode("utf-8", "replace"), digest.encode()):
            raise NotVerified("the body is not the one whose hash was signed", Cause.BODY_CHANGED, place=SIGNATURE)
        check_age(time_in(claims, "iat"), now, past=self._tolerance, future=self._tolerance, what="the token")
        return Verified()

    def _load(self, key_id: str) -> Mapping[str, Any]:
        asked = json.dumps({**self._credentials, "key_id": key_id}).encode()
        document = self._fetch(self._url, asked, JSON_BODY)
        if document is None:
            return {}
        try:
            answer = read_json(document)
        except UnreadableBody:
            answer = None
        key = answer.get("key") if isinstance(answer, dict) else None
        if not isinstance(key, dict):
            raise KeysUnavailable("the key server sent what is no key")
        found = read_key(key, "ES256")
        # A key that Plaid has withdrawn signs nothing any more.
        return {} if found is None or key.get("expired_at") is not None else dict([found])


def _says_unknown(status: int, body: bytes) -> bool:
    return status == 400 and UNKNOWN_KEY in body


plaid = Provider(
    name="plaid",
    title="Plaid",
    documentation="https://plaid.com/docs/api/webhooks/webhook-verification/",
    family=Family.FETCHED_KEY,
    verifier=PlaidVerifier,
    takes_secrets=False,
    takes_tolerance=True,
    options=(
        Option("client_id", "the client id of Plaid's API", required=True),
        Option("api_secret", "the secret of Plaid's API, by which keys are fetched", required=True, secret=True),
        Option("environment", "production or sandbox; production if not given"),
        OWN_FETCH,
    ),
    signature_headers=(SIGNATURE,),
    event_id=EACH_REQUEST,
    event_type=joined("webhook_type", "webhook_code", by="."),
    resource="item_id",
    deleted=("ITEM.USER_PERMISSION_REVOKED",),
    survives="""Nothing: a signal has no id, and one in the same bytes says that something has changed again. Every
    request is an event, also when it is sent again.""",
    cautions="""Signals have no version, and come in any order: let the handler ask Plaid for what has changed, as
    /transactions/sync does. A request that somebody has seen counts once more if it is sent again within the
    tolerance.""",
    unconfirmed=("An unknown key id is answered with 400 and INVALID_WEBHOOK_VERIFICATION_KEY_ID.",),
)
