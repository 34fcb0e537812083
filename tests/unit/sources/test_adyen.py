"""Adyen: every notification bears its own signature over eight of its fields."""

from __future__ import annotations

import hmac
import json
from base64 import b64encode
from typing import Any

import pytest

from hookledger.errors import Cause, NotVerified, SecretError, UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources import adyen, adyen_platform
from tests.unit.sources.made import NOW

KEY = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
FIELDS = {
    "pspReference": "8825408195409505",
    "originalReference": "7914073381342284",
    "merchantAccountCode": "TestMerchant",
    "merchantReference": "order:17",
    "amount": {"value": 1130, "currency": "EUR"},
    "eventCode": "CAPTURE",
    "success": "true",
    "eventDate": "2026-03-02T10:16:00+01:00",
}
# Written out here as the documentation has it.
SIGNED = b"8825408195409505:7914073381342284:TestMerchant:order:17:1130:EUR:CAPTURE:true"

source = adyen(secrets=KEY)


def signature(signed: bytes = SIGNED, key: str = KEY) -> str:
    return b64encode(hmac.digest(bytes.fromhex(key), signed, "sha256")).decode()


def item(written: Any = None, **changed: Any) -> dict[str, Any]:
    data = {"hmacSignature": signature() if written is None else written}
    return {"NotificationRequestItem": {**FIELDS, "additionalData": data, **changed}}


def sent(*items: Any) -> Request:
    return Request("adyen", "POST", Headers(), json.dumps({"live": "false", "notificationItems": items}).encode())


def refused(request: Request) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        source.verifier.verify(request, NOW)
    return caught.value


def test_every_notification_is_verified_and_is_a_delivery_of_its_own() -> None:
    other = item(signature(SIGNED.replace(b"CAPTURE", b"REFUND")), eventCode="REFUND")
    request = sent(item(), other)
    source.verifier.verify(request, NOW)
    events = source.read(request)
    assert [event.event_id for event in events] == ["CAPTURE/8825408195409505/true", "REFUND/8825408195409505/true"]
    assert {event.resource for event in events} == {"7914073381342284"}
    assert source.accepted.body == b"[accepted]"


def test_one_notification_that_is_not_signed_refuses_all() -> None:
    for bad in (item(pspReference="1"), item(""), item(additionalData={}), item(additionalData=None), 5, {}, None):
        for items in ((bad,), (item(), bad), (bad, item())):
            refused(sent(*items))
    assert "notification 1" in str(refused(sent(item(), item(pspReference="1"))))


@pytest.mark.parametrize(
    "name", ["pspReference", "originalReference", "merchantAccountCode", "merchantReference", "eventCode", "success"]
)
def test_a_changed_field_is_refused(name: str) -> None:
    for value in ("other", "", None, 5, 1.5, ["x"], {"a": 1}, 10**50, "\ud800"):
        refused(sent(item(**{name: value})))
    for amount in ({"value": 1131, "currency": "EUR"}, {"value": 1130}, {"value": 1130.0, "currency": "EUR"}, None, 5):
        refused(sent(item(amount=amount)))


def test_missing_fields_are_signed_as_empty_ones() -> None:
    missing = dict.fromkeys(("originalReference", "merchantReference", "amount"))
    signed = b"8825408195409505::TestMerchant::::CAPTURE:true"
    source.verifier.verify(sent(item(signature(signed), **missing)), NOW)
    source.verifier.verify(sent(item(success=True)), NOW)


@pytest.mark.parametrize(
    "written", ["\u00e9", "!", 5, None, [], signature()[:-1], signature() + "=", signature().lower()]
)
def test_a_signature_that_is_none_is_refused(written: Any) -> None:
    refused(sent(item(written, additionalData={"hmacSignature": written})))


def test_several_keys_count_and_tell_which() -> None:
    both = adyen(secrets=["00" * 32, KEY])
    found = both.verifier.verify(sent(item()), NOW)
    assert found is not None
    assert found.secret == 1


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"notificationItems": []}', b'{"notificationItems": 5}', b"\xff"]
)
def test_what_has_no_notifications_is_refused(body: bytes) -> None:
    assert refused(Request("adyen", "POST", Headers(), body)).cause in (
        Cause.SIGNATURE_MISSING,
        Cause.SIGNATURE_MALFORMED,
    )
    with pytest.raises(UnreadableBody):
        source.signed(body, NOW)


def test_a_key_is_written_in_hex() -> None:
    for make in (adyen, adyen_platform):
        with pytest.raises(SecretError, match="hex digits"):
            make(secrets="k-test-1")


def test_no_field_can_pass_for_another() -> None:
    # The same bytes are signed: the reference of the merchant holds colons, and what stands between them is moved.
    source.verifier.verify(sent(item()), NOW)
    moved = {
        "pspReference": "8825408195409505:7914073381342284",
        "originalReference": "TestMerchant",
        "merchantAccountCode": "order",
        "merchantReference": "17",
    }
    refused(sent(item(**moved)))
    refused(sent(item(merchantReference="order", amount={"value": "17:1130", "currency": "EUR"})))
