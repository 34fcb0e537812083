"""What the source `standard_webhooks` reads from a request."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from hookledger.delivery import Event
from hookledger.errors import NotVerified, SetupError
from hookledger.http import Headers, Request
from hookledger.sources import standard_webhooks
from hookledger.version import read_version

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
NOW = 1_700_000_000
BODY = b'{"type":"invoice.paid","timestamp":"2023-11-14T22:13:20.123Z","data":{"id":"inv_1"}}'
source = standard_webhooks("billing", secrets=SECRET)


def signed(family: str, identifier: str, body: bytes, *, prefix: str = "v1,") -> list[tuple[str, str]]:
    message = f"{identifier}.{NOW}.".encode("latin-1") + body
    digest = hmac.new(b"0123456789abcdef01234567", message, hashlib.sha256).digest()
    return [
        (f"{family}-id", identifier),
        (f"{family}-timestamp", str(NOW)),
        (f"{family}-signature", prefix + base64.b64encode(digest).decode()),
    ]


def request(headers: list[tuple[str, str]], body: bytes = BODY) -> Request:
    return Request("billing", "POST", Headers(headers), body)


@pytest.mark.parametrize("family", ["webhook", "svix", "Webhook", "SVIX"])
def test_an_event_is_read_under_either_spelling_of_the_headers(family: str) -> None:
    sent = request(signed(family, "msg_1", BODY))
    source.verifier.verify(sent, NOW)
    (event,) = source.read(sent)
    assert (event.event_id, event.event_type, event.resource) == ("msg_1", "invoice.paid", "inv_1")
    assert read_version(event.version) == read_version("2023-11-14T22:13:20.123Z")


def test_an_unsigned_id_never_takes_the_place_of_the_signed_one() -> None:
    genuine = signed("svix", "msg_1", BODY)
    sent = request([("webhook-id", "msg_forged"), *genuine])
    source.verifier.verify(sent, NOW)
    assert source.read(sent)[0].event_id == "msg_1"
    with pytest.raises(NotVerified):
        source.verifier.verify(request([("webhook-id", "x"), ("webhook-signature", "v1,x"), *genuine]), NOW)
    with pytest.raises(NotVerified):
        source.verifier.verify(request([("svix-id", "msg_forged"), *genuine]), NOW)


def test_other_versions_and_damaged_signatures_are_skipped() -> None:
    *described, (name, right) = signed("webhook", "msg_1", BODY)
    for value in (f"v1a,AAAA {right}", f"{right} v2,x", f"v1 v1, ,, v1,%%% \xe9 {right}", f"  {right}  "):
        source.verifier.verify(request([*described, (name, value)]), NOW)
    for value in (f"v1a,{right[3:]}", right[3:], "v1a,AAAA", right.replace(",", "=")):
        with pytest.raises(NotVerified):
            source.verifier.verify(request([*described, (name, value)]), NOW)


def test_an_id_of_any_bytes_is_verified_as_it_came() -> None:
    sent = request(signed("webhook", "msg_\xe9", BODY))
    source.verifier.verify(sent, NOW)
    assert source.read(sent)[0].event_id == "msg_\xe9"


def test_b026_a_blank_signed_id_is_no_id() -> None:
    assert source.read(request(signed("webhook", " ", BODY)))[0].event_id is None


def test_an_unreadable_body_keeps_the_signed_id() -> None:
    (event,) = source.read(request(signed("webhook", "msg_1", b"{"), b"{"))
    assert (event.event_id, event.event_type) == ("msg_1", "")
    assert "not JSON" in str(event.unreadable)


def test_other_paths_can_be_given() -> None:
    other = standard_webhooks(
        "openai", secrets=SECRET, event_type="event.kind", resource=None, version="created_at", version_unit="seconds"
    )
    body = b'{"event":{"kind":"response.completed"},"created_at":1700000000}'
    (event,) = other.read(request(signed("webhook", "msg_1", body), body))
    assert event == Event("msg_1", "response.completed", None, event.version)
    assert read_version(event.version) == read_version("2023-11-14T22:13:20Z")
    assert (other.has_resource, other.has_version) == (False, True)
    with pytest.raises(SetupError, match="version_unit"):
        standard_webhooks(secrets=SECRET, version_unit="days")  # type: ignore[arg-type]


def test_signing_makes_one_id_of_one_body() -> None:
    assert source.sign is not None
    first, again = source.sign(BODY, NOW), source.sign(BODY, NOW + 60)
    assert first.get("webhook-id") == again.get("webhook-id")
    assert first.get("webhook-signature") != again.get("webhook-signature")
    assert first.get("webhook-id") != source.sign(BODY + b" ", NOW).get("webhook-id")
