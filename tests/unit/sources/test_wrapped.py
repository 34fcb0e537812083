"""Documents inside forms and multipart bodies: Dropbox Sign, Mandrill; and Plivo, which signs query and form."""

from __future__ import annotations

import contextlib
import hmac
import json
from base64 import b64encode
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger.errors import Cause, NotVerified, SecretError, UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources import Source, dropbox_sign, mandrill, plivo
from hookledger.sources.wrapped import in_field, in_part
from tests.unit.sources.conftest import Deliver
from tests.unit.sources.made import NOW, deliveries

JSON = in_part("json")


def multipart(boundary: str = "xyz") -> Headers:
    return Headers([("Content-Type", f"multipart/form-data; boundary={boundary}")])


def body(*parts: tuple[str, bytes], boundary: str = "xyz") -> bytes:
    pieces = [f"--{boundary}\r\nContent-Disposition: form-data; {name}\r\n\r\n".encode() + text for name, text in parts]
    return b"\r\n".join([*pieces, f"--{boundary}--\r\n".encode()])


def refused(source: Source, request: Request) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        source.verifier.verify(request, NOW)
    return caught.value


@pytest.mark.parametrize("written", ["xyz", '"xyz"', "xyz; charset=utf-8", " xyz", '"a b=(c)"'])
def test_a_part_is_found_by_its_name(written: str) -> None:
    boundary = "a b=(c)" if "a b" in written else "xyz"
    headers = Headers([("content-type", f"Multipart/Form-Data; charset=utf-8; Boundary={written.strip()}")])
    parts = body(('name="other"', b"1"), ('name="json"', b'{"a":"\r\n--"}'), boundary=boundary)
    assert JSON(headers, parts) == b'{"a":"\r\n--"}'
    assert JSON(multipart(), body(("name=json", b"{}"))) == b"{}"
    assert JSON(multipart(), body(('name="json"; filename="a"', b"\xff"))) == b"\xff"


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        (Headers(), body(('name="json"', b"{}"))),
        (Headers([("Content-Type", "multipart/form-data")]), body(('name="json"', b"{}"))),
        (multipart("other"), body(('name="json"', b"{}"))),
        (multipart(), body(('name="json2"', b"{}"))),
        (multipart(), body(('filename="json"', b"{}"))),
        (multipart(), b"--xyz\r\nContent-Disposition: form-data; name=json"),
        (multipart(), b"--xyz\r\n" * 50_000),
        (multipart(), b""),
    ],
)
def test_a_body_without_the_part_is_told(headers: Headers, sent: bytes) -> None:
    with pytest.raises(UnreadableBody):
        JSON(headers, sent)


@given(st.text(max_size=60), st.binary(max_size=200))
def test_whatever_is_sent_gives_a_document_or_none(kind: str, sent: bytes) -> None:
    for written in (kind, f"multipart/form-data; boundary={kind}"):
        with contextlib.suppress(UnreadableBody):
            assert JSON(Headers([("Content-Type", written)]), sent) in sent
    with contextlib.suppress(UnreadableBody):
        in_field("a")(Headers(), sent)


# Dropbox Sign

sign = dropbox_sign(secrets=["k-new", "k-old"])


def signed_event(key: bytes = b"k-old", **changed: object) -> Request:
    event = {"event_time": "1772442960", "event_type": "signature_request_sent"}
    event["event_hash"] = hmac.digest(key, b"1772442960signature_request_sent", "sha256").hex()
    document = {"event": {**event, **changed}, "signature_request": {"signature_request_id": "r-1"}}
    return Request("dropbox-sign", "POST", multipart(), body(('name="json"', json.dumps(document).encode())))


def test_an_event_of_dropbox_sign_verifies_and_is_answered_as_it_wants(deliver: Deliver) -> None:
    found = sign.verifier.verify(signed_event(), NOW)
    assert found is not None
    assert found.secret == 1
    assert sign.accepted.body == b"Hello API Event Received"
    delivery = deliver(sign, signed_event())
    assert (delivery.event_type, delivery.resource) == ("signature_request_sent", "r-1")
    assert delivery.data["signature_request"] == {"signature_request_id": "r-1"}


def test_an_event_of_dropbox_sign_that_is_not_signed_is_refused() -> None:
    for changed in (
        {"event_time": "1772442961"},
        {"event_type": "signature_request_signed"},
        {"event_hash": "0" * 64},
        {"event_hash": "\u00e9"},
        {"event_hash": None},
        {"event_time": 1772442960},
        {"event_type": None},
    ):
        refused(sign, signed_event(**changed))
    assert refused(sign, signed_event(b"another")).cause is Cause.NO_MATCH
    for sent in (b"", b"{}", body(('name="json"', b"[]")), body(('name="json"', b'{"event": 5}'))):
        refused(sign, Request("dropbox-sign", "POST", multipart(), sent))


# Mandrill

URL = "https://example.com/webhooks/mandrill?a=1"
mail = mandrill(secrets="k-test-1", url=URL)


def mandrill_request(events: object, key: bytes = b"k-test-1", url: str = URL, **more: str) -> Request:
    fields = {"mandrill_events": json.dumps(events), **more}
    message = url + "".join(name + fields[name] for name in sorted(fields))
    signature = b64encode(hmac.digest(key, message.encode(), "sha1")).decode()
    return Request("mandrill", "POST", Headers([("X-Mandrill-Signature", signature)]), urlencode(fields).encode())


def test_every_event_of_mandrill_is_a_delivery_of_its_own() -> None:
    events = [
        {"event": "open", "_id": "m-1", "ts": 1},
        {"event": "open", "_id": "m-1", "ts": 1, "url": "x"},
        {"type": "a"},
    ]
    request = mandrill_request(events, another="1")
    mail.verifier.verify(request, NOW)
    found = deliveries(mail, request)
    assert [(each.event_type, each.resource, each.data) for each in found] == [
        ("open", "m-1", events[0]),
        ("open", "m-1", events[1]),
        ("a", None, events[2]),
    ]
    assert len({event.content for event in mail.read(request)}) == 3
    assert list(mail.read(mandrill_request([]))) == []


def test_a_form_of_mandrill_that_is_not_signed_is_refused() -> None:
    refused(mail, mandrill_request([], b"another"))
    refused(mail, mandrill_request([], url="https://example.com/webhooks/mandrill"))
    assert refused(mail, Request("mandrill", "POST", Headers(), b"mandrill_events=[]")).cause is Cause.SIGNATURE_MISSING
    with pytest.raises(SecretError, match="has published"):
        mandrill(secrets="test-webhook", url=URL)


@pytest.mark.parametrize("events", [5, {"event": 5}, "x", None])
def test_events_of_mandrill_that_cannot_be_read_are_dead_letters(events: object) -> None:
    for event in mail.read(mandrill_request(events)):
        assert event.unreadable or isinstance(events, dict)
    (missing,) = mail.read(Request("mandrill", "POST", Headers(), b"a=1"))
    assert missing.unreadable == "the form has no field 'mandrill_events'"


# Plivo

FORM = ("Content-Type", "application/x-www-form-urlencoded")
phone = plivo(secrets=["k-new", "k-test-1"], url="https://example.com/p?b=2&a=x%20y")


def test_plivo_signs_the_sorted_query_and_form_and_a_nonce() -> None:
    message = b"https://example.com/p?a=x y&b=2.CallUUID1Emptytob.nonce"
    signature = b64encode(hmac.digest(b"k-test-1", message, "sha256")).decode()
    headers = [FORM, ("X-Plivo-Signature-V3", f"junk, {signature}"), ("X-Plivo-Signature-V3-Nonce", "nonce")]
    good = Request("plivo", "POST", Headers(headers), b"to=b&Empty=&CallUUID=1")
    found = phone.verifier.verify(good, NOW)
    assert found is not None
    assert found.secret == 1
    for wrong in (b"to=c&Empty=&CallUUID=1", b"to=b&CallUUID=1", b"", b'{"a":1}'):
        refused(phone, Request("plivo", "POST", Headers(headers), wrong))
    refused(phone, Request("plivo", "POST", Headers(headers), good.body, query="b=3&a=x%20y"))
    refused(phone, Request("plivo", "POST", Headers([*headers[:2], (headers[2][0], "other")]), good.body))
    refused(phone, Request("plivo", "POST", Headers(headers[1:]), good.body))
    for missing in (1, 2):
        left = Headers([pair for number, pair in enumerate(headers) if number != missing])
        assert refused(phone, Request("plivo", "POST", left, good.body)).cause is Cause.SIGNATURE_MISSING
    refused(phone, Request("plivo", "POST", Headers(headers), good.body, query="&" * 5000))
    refused(phone, Request("plivo", "POST", Headers(headers), good.body, query="\ud800=1"))


def test_the_end_of_a_form_of_plivo_cannot_be_moved_into_the_nonce() -> None:
    signed = phone.signed(b"CallUUID=1&Text=pay.no.one", NOW)
    phone.verifier.verify(replace(signed, query="b=2&a=x%20y"), NOW)
    nonce = signed.headers.get("X-Plivo-Signature-V3-Nonce")
    headers = [(name, value) for name, value in signed.headers if "Nonce" not in name]
    moved = Headers([*headers, ("X-Plivo-Signature-V3-Nonce", f"no.one.{nonce}")])
    refused(phone, Request("plivo", "POST", moved, b"CallUUID=1&Text=pay"))


def test_a_long_line_of_a_part_is_searched_once() -> None:
    # From each of its beginnings on it would be minutes.
    head = b"content-disposition:" * 50_000
    source = dropbox_sign(secrets="k-test-1")
    refused(source, Request("dropbox-sign", "POST", multipart(), b"--xyz\r\n" + head + b"\r\n\r\n{}\r\n--xyz--"))
