"""Braintree: a form with a signed payload of XML."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from urllib.parse import urlencode

import pytest

from hookledger.errors import Cause, NotVerified, SetupError, UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources import braintree
from hookledger.sources.providers.braintree import braintree as provider
from hookledger.sources.providers.braintree import notification
from tests.unit.sources.conftest import Deliver
from tests.unit.sources.made import NOW

XML = provider.example().body
source = braintree(secrets="integration_private_key", public_key="integration_public_key")


def signature(payload: bytes, private_key: bytes = b"integration_private_key") -> str:
    return hmac.new(hashlib.sha1(private_key).digest(), payload, hashlib.sha1).hexdigest()


def sent(payload: str, signatures: str) -> Request:
    body = urlencode({"bt_signature": signatures, "bt_payload": payload}).encode()
    return Request("braintree", "POST", Headers(), body)


def genuine(xml: bytes = XML) -> Request:
    payload = b64encode(xml).decode() + "\n"
    return sent(payload, f"integration_public_key|{signature(payload.encode())}")


def refused(request: Request) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        source.verifier.verify(request, NOW)
    return caught.value


def test_a_payload_verifies_with_or_without_its_last_line_end() -> None:
    source.verifier.verify(genuine(), NOW)
    payload = b64encode(XML).decode()
    lost = signature(f"{payload}\n".encode())
    source.verifier.verify(sent(payload, f"integration_public_key|{lost}"), NOW)


def test_any_of_several_pairs_counts() -> None:
    payload = b64encode(XML).decode() + "\n"
    good = f"integration_public_key|{signature(payload.encode())}"
    other = f"other_public_key|{signature(payload.encode(), b'other')}"
    for pairs in (f"{other}&{good}", f"{good}&{other}", f"junk&|&{good}"):
        source.verifier.verify(sent(payload, pairs), NOW)
    for pairs in (other, "", "&", "|", "integration_public_key|", good.replace("|", ""), good[:-1], f"{good}0"):
        refused(sent(payload, pairs))


def test_a_changed_payload_is_refused() -> None:
    payload = b64encode(XML).decode() + "\n"
    good = f"integration_public_key|{signature(payload.encode())}"
    for changed in (payload.replace("P", "Q", 1), payload[:-2], payload + "AAAA", "", "!", "\u00e9", "=" * 8):
        refused(sent(changed, good))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"bt_payload=AAAA",
        b"bt_signature=a|b",
        b"\xff",
        b"bt_payload=A&bt_payload=B&bt_signature=a|b",
        b"a&" * 20_000,
    ],
)
def test_a_form_that_is_none_is_refused(body: bytes) -> None:
    assert refused(Request("braintree", "POST", Headers(), body)).cause in (
        Cause.SIGNATURE_MISSING,
        Cause.SIGNATURE_MALFORMED,
    )


def test_a_handler_gets_what_the_xml_says(deliver: Deliver) -> None:
    delivery = deliver(source, genuine())
    assert delivery.data["kind"] == "subscription_went_past_due"
    assert delivery.data["source_merchant_id"] == "3w9zk4dx"
    assert delivery.data["subject"]["subscription"] == {
        "id": "sub-17",
        "status": "Past Due",
        "price": "12.00",
        "number_of_billing_cycles": 12,
        "never_expires": False,
        "descriptor": None,
        "transactions": [{"id": "tr-1", "amount": "12.00"}],
    }


def test_a_notification_whose_subject_has_no_id_is_known_by_its_bytes() -> None:
    xml = b"<notification><kind>check</kind><subject><check type='boolean'>true</check></subject></notification>"
    (event,) = source.read(genuine(xml))
    assert (event.event_id, event.event_type, event.resource, event.unreadable) == (None, "check", None, None)


@pytest.mark.parametrize(
    "xml",
    [
        b"",
        b"text",
        b"<notification>",
        b"<notification/>",
        b"\xff\xfe<",
        b"<?xml version='1.0' encoding='no-such'?><notification/>",
        b"<!DOCTYPE a [<!ENTITY b 'c'>]><notification><kind>&b;</kind></notification>",
        b"<a>" * 200 + b"</a>" * 200,
    ],
)
def test_xml_that_cannot_be_read_is_a_dead_letter(xml: bytes) -> None:
    request = genuine(xml or b" ")
    source.verifier.verify(request, NOW)
    (event,) = source.read(request)
    assert event.unreadable
    with pytest.raises(UnreadableBody):
        notification(request.body)


def test_the_public_key_is_checked_at_start() -> None:
    for wrong in ("integration|public", "a b", "\u00e9"):
        with pytest.raises(SetupError, match="public_key="):
            braintree(secrets="k", public_key=wrong)
