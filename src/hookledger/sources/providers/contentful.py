"""Contentful: webhooks that are signed.

https://www.contentful.com/developers/docs/webhooks/request-verification/
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote, urlsplit

from hookledger.errors import Cause, NotVerified
from hookledger.http import Headers, Request
from hookledger.sources.describe import Family, Provider, SecretRules, Settings, joined
from hookledger.sources.places import wire
from hookledger.sources.source import Verified
from hookledger.sources.timestamps import check_age, read_timestamp, write_timestamp
from hookledger.sources.unverified import malformed

SIGNATURE, SIGNED_HEADERS, TIMESTAMP = (
    "X-Contentful-Signature",
    "X-Contentful-Signed-Headers",
    "X-Contentful-Timestamp",
)
TOLERANCE = 30.0  # seconds; the default of Contentful's own toolkit
MOST_HEADERS = 50
# What JavaScript's encodeURI and Node's querystring.escape leave as it is.
UNRESERVED = "-_.!~*'()"
RESERVED = ";,/?:@&=+$#"


class ContentfulVerifier:
    """HMAC-SHA256 over the method, the path, the headers that are listed, and the body.

    https://github.com/contentful/node-apps-toolkit/blob/main/src/requests/sign-request.ts

    Args:
        keys: signing secrets.
        settings: with the public URL.
    """

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        self.keys = keys
        self._settings = settings
        self.url = settings.url or ""
        self._tolerance = TOLERANCE if settings.tolerance is None else settings.tolerance

    def verify(self, request: Request, now: float) -> Verified:
        """Return if one of the secrets signed the request within the tolerance.

        Raises:
            NotVerified: with the reason.
        """
        for name in (SIGNATURE, SIGNED_HEADERS, TIMESTAMP):
            if name not in request.headers:
                raise NotVerified(f"the header {name} is missing", Cause.SIGNATURE_MISSING, place=name)
        given = wire(request.headers.get(SIGNATURE) or "").strip().lower()
        listed = (request.headers.get(SIGNED_HEADERS) or "").split(",")
        if len(listed) > MOST_HEADERS:
            raise malformed(f"the header {SIGNED_HEADERS} lists more than {MOST_HEADERS} headers")
        names = {name.strip().lower() for name in listed} | {SIGNED_HEADERS.lower(), TIMESTAMP.lower()}
        pairs = [(name, value) for name in names if (value := request.headers.get(name)) is not None]
        message = canonical(
            request.method, _path(self.url, request.query or urlsplit(self.url).query), pairs, request.body
        )
        matching = [hmac.compare_digest(_signature(key, message), given) for key in self.keys]
        if not any(matching):
            raise NotVerified(
                f"the header {SIGNATURE} does not match: the secret or url= is not that of the sender, or the request "
                "was changed",
                Cause.NO_MATCH,
                place=SIGNATURE,
            )
        signed_at = read_timestamp(wire(request.headers.get(TIMESTAMP) or "").strip(), "milliseconds")
        if signed_at is None:
            raise NotVerified(f"the header {TIMESTAMP} is no time in milliseconds", Cause.TIMESTAMP_MALFORMED)
        check_age(signed_at, now, past=self._tolerance, future=self._tolerance)
        return Verified(matching.index(True))

    def with_url(self, url: str) -> ContentfulVerifier:
        """The same for another public URL."""
        return ContentfulVerifier(self.keys, replace(self._settings, url=url))

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """Headers that make a body verify."""
        signed = [
            (SIGNED_HEADERS.lower(), f"{SIGNED_HEADERS},{TIMESTAMP}".lower()),
            (TIMESTAMP.lower(), write_timestamp(now, "milliseconds")),
        ]
        message = canonical("POST", _path(self.url, urlsplit(self.url).query), signed, body)
        return Headers([*signed, (SIGNATURE, _signature(self.keys[0], message).decode())])


def canonical(method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
    """What is signed.

    Args:
        method: of HTTP.
        path: as `encodeURI` writes it, with the query escaped before that.
        headers: those that are listed, with names in lower case.
        body: the exact bytes.
    """
    listed = ";".join(f"{name}:{value.strip()}" for name, value in sorted(headers))
    return b"\n".join((method.encode("utf-8", "replace"), path.encode(), wire(listed), body))


def _path(url: str, query: str) -> str:
    path = quote(urlsplit(url).path, safe=UNRESERVED + RESERVED)
    # The query is escaped twice, which writes % as %25.
    escaped = quote(wire(query.partition("?")[0]), safe=UNRESERVED).replace("%", "%25")
    return f"{path}?{escaped}" if escaped else path


def _signature(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256").hex().encode()


contentful = Provider(
    name="contentful",
    title="Contentful",
    documentation="https://www.contentful.com/developers/docs/webhooks/request-verification/",
    family=Family.CANONICAL_REQUEST,
    verifier=ContentfulVerifier,
    needs_url=True,
    takes_tolerance=True,
    secret=SecretRules(pattern=r".{64}", pattern_says="the 64 characters of the signing secret"),
    signature_headers=(SIGNATURE, SIGNED_HEADERS, TIMESTAMP),
    event_id=joined(
        "header:X-Contentful-Topic", "sys.space.sys.id?", "sys.environment.sys.id?", "sys.id", "sys.updatedAt"
    ),
    event_type="header:X-Contentful-Topic",
    resource=joined("sys.space.sys.id?", "sys.environment.sys.id?", "sys.id"),
    version="sys.updatedAt",
    deleted=("*.delete",),
    survives="""A webhook has no id. The topic, the id of the entry and the time of its change tell webhooks apart, and
    are the same at every attempt; X-Contentful-Timestamp is not.""",
    cautions="""url= must have the path exactly as Contentful has it. sys.version counts drafts and sys.revision what
    was published, so the time of the change is the version.""",
    unconfirmed=("That X-Contentful-Topic is among the headers that are signed.",),
)
