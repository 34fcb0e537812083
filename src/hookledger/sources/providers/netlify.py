"""Netlify: notifications of deploys.

https://docs.netlify.com/deploy/deploy-notifications/#payload-signature
"""

from __future__ import annotations

import hashlib
import hmac

from hookledger.errors import Cause, NotVerified
from hookledger.http import Headers, Request
from hookledger.sources.describe import Family, Provider, Settings, joined
from hookledger.sources.source import Verified
from hookledger.sources.tokens import Token, require_pyjwt, sign_token

SIGNATURE = "X-Webhook-Signature"
ISSUER = "netlify"


class NetlifyVerifier:
    """A token (HS256) with the hash of the body.

    Args:
        keys: JWS secret tokens.
        settings: none of its own.
    """

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        require_pyjwt("Netlify")
        self.keys = keys

    def verify(self, request: Request, now: float) -> Verified:
        """Return if one of the secrets signed the hash of the body.

        Raises:
            NotVerified: with the reason.
        """
        given = request.headers.get(SIGNATURE)
        if given is None:
            raise NotVerified(f"the header {SIGNATURE} is missing", Cause.SIGNATURE_MISSING, place=SIGNATURE)
        token = Token(given, "HS256")
        number, claims = token.claims_of_one(self.keys)
        wanted = claims.get("sha256")
        digest = hashlib.sha256(request.body).hexdigest()
        if not isinstance(wanted, str) or not hmac.compare_digest(wanted.encode("utf-8", "replace"), digest.encode()):
            raise NotVerified("the body is not the one whose hash was signed", Cause.BODY_CHANGED, place=SIGNATURE)
        if claims.get("iss") != ISSUER:
            raise NotVerified("the token was not issued by Netlify", Cause.KEY_NOT_TRUSTED)
        return Verified(number)

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """Headers that make a body verify."""
        claims = {"iss": ISSUER, "sha256": hashlib.sha256(body).hexdigest()}
        return Headers([(SIGNATURE, sign_token(claims, self.keys[0]))])


netlify = Provider(
    name="netlify",
    title="Netlify",
    documentation="https://docs.netlify.com/deploy/deploy-notifications/#payload-signature",
    family=Family.BODY_HMAC,
    verifier=NetlifyVerifier,
    signature_headers=(SIGNATURE,),
    event_id=joined("id", "state", "updated_at"),
    event_type=("header:X-Netlify-Event", "state"),
    resource="id",
    version="updated_at",
    survives="""A notification has no id. The deploy, its state and the time of its last change tell notifications
    apart, and are of the body.""",
    cautions="The signature has no timestamp: a captured request can be sent again.",
    unconfirmed=("The fields of the body, and the header X-Netlify-Event.",),
)
