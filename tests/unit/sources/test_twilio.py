"""Twilio: the URL and the sorted fields of the form are signed, or the URL with the hash of the body."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from dataclasses import replace

import pytest

from hookledger.delivery import Event
from hookledger.errors import Cause, NotVerified, SetupError
from hookledger.http import Headers, Request
from hookledger.sources import Source, twilio
from hookledger.version import read_version
from tests.unit.sources.made import NOW

FORM = ("Content-Type", "application/x-www-form-urlencoded")


def request(body: bytes, *headers: tuple[str, str], query: str = "") -> Request:
    return Request("twilio", "POST", Headers(headers), body, query=query)


def read(source: Source, body: bytes, *headers: tuple[str, str]) -> Event:
    (event,) = source.read(request(body, *headers))
    return event


def refused(source: Source, sent: Request) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        source.verifier.verify(sent, NOW)
    return caught.value


URL = "https://example.com/webhooks/twilio"
phone = twilio(secrets="12345", url=URL)


def from_twilio(url: str, body: bytes = b"", fields: bytes = b"", query: str = "") -> Request:
    signature = b64encode(hmac.digest(b"12345", url.encode() + fields, "sha1")).decode()
    return request(body, FORM, ("X-Twilio-Signature", signature), query=query)


def test_twilio_signs_the_url_with_or_without_the_usual_port() -> None:
    for url in (URL, "https://example.com:443/webhooks/twilio"):
        for configured in (URL, "https://example.com:443/webhooks/twilio"):
            twilio(secrets="12345", url=configured).verifier.verify(from_twilio(url), NOW)
    refused(phone, from_twilio("https://example.com:8443/webhooks/twilio"))
    odd = twilio(secrets="12345", url="https://example.com:8443/webhooks/twilio")
    odd.verifier.verify(from_twilio("https://example.com:8443/webhooks/twilio"), NOW)
    refused(odd, from_twilio(URL))


def test_twilio_signs_decoded_fields_blank_ones_too() -> None:
    phone.verifier.verify(from_twilio(URL, b"B=&A=x+y%2B", b"Ax y+B"), NOW)
    phone.verifier.verify(from_twilio(URL, b"A=caf%C3%A9", "Acaf\u00e9".encode()), NOW)
    phone.verifier.verify(from_twilio(URL, b"A=%E9", b"A\xe9"), NOW)
    refused(phone, from_twilio(URL, b"B=&A=x", b"Ax"))


def test_twilio_signs_the_query_that_was_sent() -> None:
    phone.verifier.verify(from_twilio(f"{URL}?a=1", query="a=1"), NOW)
    refused(phone, from_twilio(f"{URL}?a=1", query="a=2"))
    refused(phone, from_twilio(f"{URL}?a=1"))


def test_twilio_s_hash_of_the_body_is_checked() -> None:
    body = b'{"a":1}'
    query = f"bodySHA256={hashlib.sha256(body).hexdigest()}"
    signed = from_twilio(f"{URL}?{query}", query=query)
    phone.verifier.verify(replace(signed, body=body), NOW)
    for changed in (b'{"a":2}', b"", b"a=1"):
        assert refused(phone, replace(signed, body=changed)).cause is Cause.BODY_CHANGED


def test_twilio_bodies_that_nothing_covers_are_refused() -> None:
    unsigned = replace(from_twilio(URL, b'{"a":1}'), headers=Headers([*from_twilio(URL).headers][1:]))
    assert refused(phone, unsigned).cause is Cause.SIGNATURE_MALFORMED
    assert refused(phone, from_twilio(URL, b"a&" * 20_000)).cause is Cause.SIGNATURE_MALFORMED


def test_twilio_tells_the_status_of_messages_and_calls() -> None:
    message = read(phone, b"MessageSid=SM1&MessageStatus=delivered", FORM, ("I-Twilio-Idempotency-Token", "t-1"))
    assert (message.event_id, message.event_type, message.resource) == ("t-1", "message.delivered", "SM1")
    assert read(phone, b"MessageSid=SM1&SmsStatus=received&Body=hi", FORM).event_type == "message.received"
    call = read(phone, b"CallSid=CA1&CallStatus=ringing&SequenceNumber=1", FORM)
    assert (call.event_id, call.event_type, read_version(call.version)) == (None, "call.ringing", (1,))
    assert read(phone, b"Other=1", FORM).event_type == ""
    assert phone.accepted.body == b"<Response/>"


@pytest.mark.parametrize("url", [None, "example.com", f"{URL}#rc=2"])
def test_twilio_needs_its_url(url: str | None) -> None:
    with pytest.raises(SetupError, match="url="):
        twilio(secrets="12345", url=url)
