"""What providers' own libraries sign, verifies here; what is signed here, they verify."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hookledger.errors import NotVerified
from hookledger.http import Headers, Request
from hookledger.sources import Source
from hookledger.sources.catalogue import provider
from tests.unit.sources.made import make
from tests.unit.sources.vendors import HEX_KEY, VENDORS, Vendor, adyen_notification, header, sent

SIGNING = [name for name, vendor in VENDORS.items() if vendor.signs is not None]


def source_of(vendor: Vendor) -> Source:
    made: Source = provider(vendor.provider)(secrets=vendor.secret, url=vendor.url)
    return made


def changed(request: Request) -> Request:
    """With another byte in the body."""
    body = bytearray(request.body)
    body[3] ^= 1
    return replace(request, body=bytes(body))


@pytest.mark.parametrize("name", VENDORS)
def test_what_is_signed_here_their_library_verifies(name: str) -> None:
    vendor = VENDORS[name]
    for body in vendor.bodies:
        request = source_of(vendor).signed(body, time.time())
        assert vendor.verifies(request)
        assert not vendor.verifies(changed(request))


@pytest.mark.parametrize("name", SIGNING)
def test_what_their_library_signs_verifies_here(name: str) -> None:
    vendor = VENDORS[name]
    source = source_of(vendor)
    for body in vendor.bodies:
        now = time.time()
        request = sent(vendor, body, now)
        source.verifier.verify(request, now)
        with pytest.raises(NotVerified):
            source.verifier.verify(changed(request), now)


# With a private key


def test_sendgrid() -> None:
    from sendgrid.helpers.eventwebhook import EventWebhook

    made = make(provider("sendgrid"))
    library = EventWebhook(made.secret)
    for body in (b'[{"email":"a@example.com"}]\r\n', '[{"email":"caf\u00e9@example.com"}]'.encode()):
        request = made.request(body=body)
        made.source.verifier.verify(request, int(header(request, "X-Twilio-Email-Event-Webhook-Timestamp")))
        for each, verifies in ((request, True), (changed(request), False)):
            signature = header(each, "X-Twilio-Email-Event-Webhook-Signature")
            timestamp = header(each, "X-Twilio-Email-Event-Webhook-Timestamp")
            assert library.verify_signature(each.body.decode(), signature, timestamp) is verifies


def test_discord(capsys: pytest.CaptureFixture[str]) -> None:
    from discord_interactions import verify_key
    from nacl.signing import SigningKey

    key = SigningKey(b"0123456789abcdef0123456789abcdef")
    public = bytes(key.verify_key).hex()
    source = provider("discord")(secrets=public)
    now = time.time()
    for body in (b'{"type":0}', '{"type":1,"n":"caf\u00e9"}'.encode()):
        signature = key.sign(str(int(now)).encode() + body).signature.hex()
        signed = Headers([("X-Signature-Timestamp", str(int(now))), ("X-Signature-Ed25519", signature)])
        request = Request("discord", "POST", signed, body)
        source.verifier.verify(request, now)
        for each, verifies in ((request, True), (changed(request), False)):
            assert verify_key(each.body, signature, str(int(now)), public) is verifies
        with pytest.raises(NotVerified):
            source.verifier.verify(changed(request), now)
    assert capsys.readouterr().err == ""


# With the signature in the body; the other way round is in test_vendor_libraries_with_code


def test_what_adyens_library_signs_verifies_here() -> None:
    source = provider("adyen")(secrets=HEX_KEY)
    item = {
        "pspReference": "7914073381342284",
        "merchantAccountCode": "TestMerchant",
        "merchantReference": "caf\u00e9",
        "amount": {"value": 1130, "currency": "EUR"},
        "eventCode": "AUTHORISATION",
        "success": "true",
    }
    notification = adyen_notification([item, {**item, "originalReference": "7914073381342283"}])
    source.verifier.verify(Request("adyen", "POST", Headers(), notification), 0)
    for spoilt in (notification.replace(b"1130", b"1131", 1), notification.replace(b"342283", b"342284")):
        assert spoilt != notification
        with pytest.raises(NotVerified):
            source.verifier.verify(Request("adyen", "POST", Headers(), spoilt), 0)
