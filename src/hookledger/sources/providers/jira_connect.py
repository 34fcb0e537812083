"""Atlassian Connect apps, of Jira and Confluence.

https://developer.atlassian.com/cloud/jira/platform/understanding-jwt-for-connect-apps/
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from urllib.parse import parse_qsl, quote, urlsplit

from hookledger.errors import Cause, NotVerified
from hookledger.http import Headers, Request
from hookledger.sources.describe import Family, Provider, Settings
from hookledger.sources.places import MOST_QUERY_FIELDS
from hookledger.sources.source import Verified
from hookledger.sources.tokens import Token, check_times, require_pyjwt, sign_token
from hookledger.sources.unverified import malformed

PREFIX = "jwt "
PARAMETER = "jwt"
LIFETIME = 180  # seconds


class ConnectVerifier:
    """A token (HS256) with a hash of the method, the path and the query (`qsh`).

    Args:
        keys: shared secrets.
        settings: with the public URL.
    """

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        require_pyjwt("Atlassian Connect")
        self.keys = keys
        self._settings = settings
        self.url = settings.url or ""

    def verify(self, request: Request, now: float) -> Verified:
        """Return if one of the secrets signed the token, for this request, and it has not expired.

        Raises:
            NotVerified: with the reason.
        """
        token = token_of(request)
        number, claims = token.claims_of_one(self.keys)
        given = claims.get("qsh")
        wanted = query_hash(request.method, self.url, request.query or urlsplit(self.url).query)
        if not isinstance(given, str) or not hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode()):
            raise NotVerified(
                "the token is for another request: its qsh is not that of url= and the query", Cause.NO_MATCH
            )
        check_times(claims, now)
        return Verified(number)

    def with_url(self, url: str) -> ConnectVerifier:
        """The same for another public URL."""
        return ConnectVerifier(self.keys, replace(self._settings, url=url))

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """Headers that make a request verify."""
        claims = {
            "iss": self._settings.name,
            "iat": int(now),
            "exp": int(now) + LIFETIME,
            "qsh": query_hash("POST", self.url, urlsplit(self.url).query),
        }
        return Headers([("Authorization", f"JWT {sign_token(claims, self.keys[0])}")])


def token_of(request: Request) -> Token:
    """The token of a request, in its header or its query.

    Raises:
        NotVerified: if it has none.
    """
    given = request.headers.get("Authorization") or ""
    if given.lower().startswith(PREFIX):
        return Token(given[len(PREFIX) :].strip(" "), "HS256")
    found = [value for name, value in _parameters(request.query) if name == PARAMETER]
    if not found:
        raise NotVerified(
            "the request has no token, neither in the header Authorization nor in the query",
            Cause.SIGNATURE_MISSING,
            place="Authorization",
        )
    return Token(found[0], "HS256")


def client_key(request: Request) -> str | None:
    """The client key of the site that a request claims to be of; None if it claims none.

    It is for `secrets=` as a function of the request. Nothing of it is verified before the secret of that site is found
    to have signed it.
    """
    try:
        found = token_of(request).unverified_claims().get("iss")
    except NotVerified:
        return None
    return found if isinstance(found, str) else None


def query_hash(method: str, url: str, query: str) -> str:
    """The hash that a token has of its request.

    https://developer.atlassian.com/cloud/jira/platform/understanding-jwt-for-connect-apps/#qsh

    Args:
        method: of HTTP.
        url: the public URL; the base URL of the app has no path.
        query: as it was sent.

    Raises:
        NotVerified: for a query with too many parameters.
    """
    path = urlsplit(url).path.rstrip("/").replace("&", "%26") or "/"
    values: dict[str, list[str]] = {}
    for name, value in _parameters(query):
        if name != PARAMETER:
            values.setdefault(_encoded(name), []).append(_encoded(value))
    parameters = "&".join(f"{name}={','.join(sorted(values[name]))}" for name in sorted(values))
    canonical = f"{method.upper()}&{path}&{parameters}"
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _parameters(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, errors="surrogateescape", max_num_fields=MOST_QUERY_FIELDS)
    except ValueError:
        raise malformed("the query has too many parameters") from None


def _encoded(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="~")


jira_connect = Provider(
    name="jira-connect",
    title="Atlassian Connect",
    documentation="https://developer.atlassian.com/cloud/jira/platform/understanding-jwt-for-connect-apps/",
    family=Family.CANONICAL_REQUEST,
    verifier=ConnectVerifier,
    needs_url=True,
    covers_body=False,
    event_id="header:X-Atlassian-Webhook-Identifier",
    event_type="webhookEvent",
    resource=("issue.id", "comment.id", "project.id", "page.id"),
    version="timestamp",
    version_unit="milliseconds",
    deleted=("*_deleted", "*_removed"),
    survives="X-Atlassian-Webhook-Identifier is the same at every attempt, and its only one within a site.",
    cautions="""The token covers the method, the path and the query, and nothing of the body: whoever sees one request
    can send any body with its token, until that expires. Each site has a shared secret of its own: give secrets= a
    function, which finds the site by `providers.jira_connect.client_key(request)`. The base URL of the app must have
    no path, as the hash is of the path after it. The callbacks `installed` and `uninstalled` are signed with another
    kind of key, and are not verified here.""",
    unconfirmed=("Atlassian is ending Connect; its apps become Forge apps.",),
)
