"""Plivo: calls and messages. https://www.plivo.com/docs/voice/concepts/signature-validation"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from hookledger.errors import Cause, NotVerified
from hookledger.http import Headers, Request
from hookledger.sources.describe import Family, OfItem, Provider, Settings
from hookledger.sources.places import MOST_QUERY_FIELDS, wire
from hookledger.sources.reading import in_form, is_form, read_form
from hookledger.sources.source import Verified
from hookledger.sources.unverified import malformed, unverified_form

SIGNATURE, NONCE = "X-Plivo-Signature-V3", "X-Plivo-Signature-V3-Nonce"
FORM = ("Content-Type", "application/x-www-form-urlencoded")
MOST_SIGNATURES = 20


class PlivoVerifier:
    """HMAC-SHA256 over the URL, the sorted fields of query and form, and a nonce (V3).

    https://github.com/plivo/plivo-python/blob/master/plivo/utils/signature_v3.py

    Args:
        keys: auth tokens.
        settings: with the public URL.
    """

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        self.keys = keys
        self._settings = settings
        self.url = settings.url or ""

    def verify(self, request: Request, now: float) -> Verified:
        """Return if one of the tokens signed the form.

        Raises:
            NotVerified: with the reason.
        """
        nonce = request.headers.get(NONCE)
        offered = [each.strip() for value in request.headers.all(SIGNATURE) for each in wire(value).split(b",")]
        if not offered or nonce is None:
            missing = NONCE if offered else SIGNATURE
            raise NotVerified(f"the header {missing} is missing", Cause.SIGNATURE_MISSING, place=missing)
        if "." in nonce:
            # The end of the last field could be moved there, behind one of the form's own dots.
            raise malformed(f"the header {NONCE} holds the dot that separates it from the form")
        if request.body and not is_form(request.headers):
            raise malformed("the body is no form, and Plivo signs forms")
        message = _message(self.url, request.query, unverified_form(request.body), wire(nonce))
        for number, key in enumerate(self.keys):
            expected = _signature(key, message)
            if any(hmac.compare_digest(expected, each) for each in offered[:MOST_SIGNATURES]):
                return Verified(number)
        raise NotVerified(
            f"no signature in the header {SIGNATURE} matches: the auth token or url= is not that of the sender, or the "
            "form was changed",
            Cause.NO_MATCH,
            place=SIGNATURE,
        )

    def with_url(self, url: str) -> PlivoVerifier:
        """The same for another public URL."""
        return PlivoVerifier(self.keys, replace(self._settings, url=url))

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """Headers that make a form verify."""
        nonce = f"{int(now)}"
        message = _message(self.url, "", read_form(body), nonce.encode())
        return Headers([FORM, (SIGNATURE, _signature(self.keys[0], message).decode()), (NONCE, nonce)])


def _message(url: str, query: str, fields: dict[str, list[str]], nonce: bytes) -> bytes:
    parts = urlsplit(url)
    try:
        asked = parse_qs(
            query or parts.query, keep_blank_values=True, errors="surrogateescape", max_num_fields=MOST_QUERY_FIELDS
        )
    except ValueError:
        raise malformed("the query has too many fields") from None
    text = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    if asked or fields:
        text += "?" + "&".join(_sorted(asked, "="))
    if asked and fields:
        text += "."
    text += "".join(_sorted(fields, ""))
    try:
        return text.encode("utf-8", "surrogateescape") + b"." + nonce
    except UnicodeEncodeError:
        raise malformed("the query or the form holds half a surrogate pair") from None


def _sorted(fields: dict[str, list[str]], between: str) -> Iterable[str]:
    return (f"{name}{between}{value}" for name in sorted(fields) for value in sorted(fields[name]))


def _signature(key: bytes, message: bytes) -> bytes:
    return b64encode(hmac.digest(key, message, "sha256"))


def _status(form: Any) -> str | None:
    """What of it has which status."""
    for kind, identity, names in (
        ("message", "MessageUUID", ("Status",)),
        ("call", "CallUUID", ("Event", "CallStatus")),
    ):
        if in_form(form, (identity,)):
            return next((f"{kind}.{status}" for name in names if (status := in_form(form, (name,)))), None)
    return None


plivo = Provider(
    name="plivo",
    title="Plivo",
    documentation="https://www.plivo.com/docs/voice/concepts/signature-validation",
    family=Family.URL_HMAC,
    verifier=PlivoVerifier,
    needs_url=True,
    signature_headers=(SIGNATURE, NONCE),
    format="form",
    event_id=None,
    event_type=OfItem(_status),
    resource=("MessageUUID", "CallUUID"),
    version=None,
    deleted=(),
    survives="The bytes of the form do; a callback has no id, and the nonce is another one for every attempt.",
    cautions="""Callbacks have no version: `delivered` may come before `sent`. Let Plivo send POST; what it sends with
    GET is not stored. Names and values are signed without anything between them: whoever sees one request can
    send others whose fields, strung together, read the same. The nonce is not
    remembered: a captured request can be sent again.""",
    unconfirmed=(
        "That a callback is sent again in the same bytes.",
        "Whether messages are signed with V3 as calls are.",
    ),
)
