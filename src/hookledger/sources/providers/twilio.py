"""Twilio: calls and messages. https://www.twilio.com/docs/usage/webhooks"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from hookledger.errors import Cause, NotVerified, UnreadableBody
from hookledger.http import Headers, Request, Response
from hookledger.sources.describe import Family, OfItem, Provider, Settings
from hookledger.sources.places import wire
from hookledger.sources.reading import in_form, is_form, read_form
from hookledger.sources.source import Verified

SIGNATURE = "X-Twilio-Signature"
BODY_HASH = "bodySHA256"
FORM = ("Content-Type", "application/x-www-form-urlencoded")
DEFAULT_PORTS = {"https": 443, "http": 80}


class TwilioVerifier:
    """HMAC-SHA1 over the URL and the sorted fields of the form; or over the URL, which then holds the body's hash.

    https://www.twilio.com/docs/usage/security#validating-requests

    Args:
        keys: auth tokens.
        settings: with the public URL.
    """

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        self.keys = keys
        self._settings = settings
        self.url = settings.url or ""

    def verify(self, request: Request, now: float) -> Verified:
        """Return if one of the tokens signed the request.

        Raises:
            NotVerified: with the reason.
        """
        offered = [wire(value) for value in request.headers.all(SIGNATURE)]
        if not offered:
            raise NotVerified(f"the header {SIGNATURE} is missing", Cause.SIGNATURE_MISSING, place=SIGNATURE)
        body_hash = parse_qs(request.query).get(BODY_HASH)
        fields = b"" if body_hash is not None else self._fields(request)
        for url in _spellings(self.url):
            message = _with_query(url, request.query) + fields
            for number, key in enumerate(self.keys):
                expected = _signature(key, message)
                if any(hmac.compare_digest(expected, each) for each in offered):
                    if body_hash is not None:
                        _require_hash(body_hash[0], request.body)
                    return Verified(number)
        raise NotVerified(
            f"no signature in the header {SIGNATURE} matches: the auth token or url= is not that of the sender, or the "
            "form was changed",
            Cause.NO_MATCH,
            place=SIGNATURE,
        )

    def with_url(self, url: str) -> TwilioVerifier:
        """The same for another public URL."""
        return TwilioVerifier(self.keys, replace(self._settings, url=url))

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """Headers that make a form verify."""
        fields = b"".join(_sorted(read_form(body)))
        signature = _signature(self.keys[0], self.url.encode() + fields)
        return Headers([FORM, (SIGNATURE, signature.decode())])

    @staticmethod
    def _fields(request: Request) -> bytes:
        if not request.body:
            return b""
        if not is_form(request.headers):
            raise NotVerified(
                f"the body is no form, and the URL has no {BODY_HASH} that would cover it", Cause.SIGNATURE_MALFORMED
            )
        try:
            return b"".join(_sorted(read_form(request.body)))
        except UnreadableBody as error:
            raise NotVerified(str(error), Cause.SIGNATURE_MALFORMED) from None


def _signature(key: bytes, message: bytes) -> bytes:
    return b64encode(hmac.digest(key, message, "sha1"))


def _sorted(fields: Mapping[str, list[str]]) -> Iterator[bytes]:
    for name in sorted(fields):
        for value in sorted(set(fields[name])):
            yield (name + value).encode("utf-8", "surrogateescape")


def _spellings(url: str) -> Iterator[str]:
    """The URL as configured, and with and without the usual port, as Twilio writes it one way or the other."""
    yield url
    parts = urlsplit(url)
    usual = DEFAULT_PORTS.get(parts.scheme)
    host = parts.netloc.removesuffix(f":{parts.port}")
    if parts.port is None:
        yield urlunsplit(parts._replace(netloc=f"{host}:{usual}"))
    elif parts.port == usual:
        yield urlunsplit(parts._replace(netloc=host))


def _with_query(url: str, query: str) -> bytes:
    """The configured URL with the query that was sent: Twilio adds to it, and all of it is signed."""
    return url.encode() if not query else url.partition("?")[0].encode() + b"?" + wire(query)


def _require_hash(wanted: str, body: bytes) -> None:
    if not hmac.compare_digest(wanted.lower().encode("utf-8", "replace"), hashlib.sha256(body).hexdigest().encode()):
        raise NotVerified(
            f"the signature matches, but the body is not the one whose hash is in {BODY_HASH}", Cause.BODY_CHANGED
        )


def _status(form: Any) -> str | None:
    """What of it has which status."""
    for kind, names in (("message", ("MessageStatus", "SmsStatus")), ("call", ("CallStatus",))):
        for name in names:
            status = in_form(form, (name,))
            if status:
                return f"{kind}.{status}"
    return None


twilio = Provider(
    name="twilio",
    title="Twilio",
    documentation="https://www.twilio.com/docs/usage/security",
    family=Family.URL_HMAC,
    verifier=TwilioVerifier,
    needs_url=True,
    signature_headers=(SIGNATURE,),
    format="json-or-form",
    event_id="header:I-Twilio-Idempotency-Token",
    event_type=OfItem(_status),
    resource=("MessageSid", "SmsSid", "CallSid"),
    version="SequenceNumber",
    deleted=(),
    # Any text would be sent to the person who wrote the message.
    accepted=Response(200, b"<Response/>", (("content-type", "text/xml"),)),
    survives="""I-Twilio-Idempotency-Token is the same at every attempt of one callback. Without it the bytes of the
    form are the key: the status of a message or call comes again in the same bytes.""",
    cautions="""The header with the id is not signed. Messages have no version: `delivered` may come before `sent`. Let
    Twilio send POST; what it sends with GET is not stored. Names and values are signed without anything between them:
    whoever sees one request can send others whose fields, strung together, read the same.""",
    verified_by=("twilio-python V15, V16, V18",),
)
