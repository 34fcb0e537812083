"""Mailchimp Transactional, once Mandrill.

https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from dataclasses import replace

from hookledger.errors import Cause, NotVerified
from hookledger.http import Headers, Request
from hookledger.sources.describe import Family, Provider, SecretRules, Settings
from hookledger.sources.event_reader import EventReader
from hookledger.sources.places import wire
from hookledger.sources.reading import read_form
from hookledger.sources.source import Verified
from hookledger.sources.unverified import unverified_form
from hookledger.sources.wrapped import in_field, reads_within

SIGNATURE = "X-Mandrill-Signature"
EVENTS = "mandrill_events"
FORM = ("Content-Type", "application/x-www-form-urlencoded")


class MandrillVerifier:
    """HMAC-SHA1 over the URL and the sorted fields of the form.

    https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/#authenticating-webhook-requests

    Args:
        keys: keys of webhooks.
        settings: with the public URL.
    """

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        self.keys = keys
        self._settings = settings
        self.url = settings.url or ""

    def verify(self, request: Request, now: float) -> Verified:
        """Return if one of the keys signed the form.

        Raises:
            NotVerified: with the reason.
        """
        offered = [wire(value) for value in request.headers.all(SIGNATURE)]
        if not offered:
            raise NotVerified(f"the header {SIGNATURE} is missing", Cause.SIGNATURE_MISSING, place=SIGNATURE)
        message = _message(self.url, unverified_form(request.body))
        for number, key in enumerate(self.keys):
            expected = _signature(key, message)
            if any(hmac.compare_digest(expected, each) for each in offered):
                return Verified(number)
        raise NotVerified(
            f"the header {SIGNATURE} does not match: the key or url= is not that of the sender, or the form was "
            "changed",
            Cause.NO_MATCH,
            place=SIGNATURE,
        )

    def with_url(self, url: str) -> MandrillVerifier:
        """The same for another public URL."""
        return MandrillVerifier(self.keys, replace(self._settings, url=url))

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """Headers that make a form verify."""
        return Headers([FORM, (SIGNATURE, _signature(self.keys[0], _message(self.url, read_form(body))).decode())])


def _message(url: str, fields: dict[str, list[str]]) -> bytes:
    pairs = "".join(name + value for name in sorted(fields) for value in fields[name])
    return url.encode() + pairs.encode("utf-8", "surrogateescape")


def _signature(key: bytes, message: bytes) -> bytes:
    return b64encode(hmac.digest(key, message, "sha1"))


mandrill = Provider(
    name="mandrill",
    title="Mailchimp Transactional (Mandrill)",
    documentation="https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/",
    family=Family.URL_HMAC,
    verifier=MandrillVerifier,
    needs_url=True,
    secret=SecretRules(refused=("test-webhook",)),
    signature_headers=(SIGNATURE,),
    items="",
    reads=reads_within(
        in_field(EVENTS),
        EventReader("json", event_id=None, event_type=("event", "type"), resource="_id", version="ts", items=""),
    ),
    event_id=None,
    event_type=("event", "type"),
    resource="_id",
    version="ts",
    deleted=(),
    survives="""The bytes of an event do: `_id` is that of the message, which has many events, and several of them may
    be of one kind and second.""",
    cautions="""url= must be as the webhook has it, to the last slash. The signature has no timestamp: a captured
    request can be sent again.""",
    unconfirmed=("That an event is sent again in the same bytes.",),
)
