"""The generic source: its options, what it reads, and how wrong options are told."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest

from hookledger.delivery import Delivery, Event
from hookledger.errors import NotVerified, SetupError
from hookledger.http import Headers, Request
from hookledger.sources import Source, hmac_source
from hookledger.version import read_version


def shop(**options: Any) -> Source:
    return hmac_source("shop", **{"header": "X-Sig", "secrets": "k-test-1", **options})


def read(source: Source, body: bytes, *headers: tuple[str, str]) -> Event:
    (event,) = source.read(Request(source.name, "POST", Headers(headers), body))
    return event


SLACK = {
    "header": "X-Slack-Signature",
    "prefix": "v0=",
    "signed": "v0:{timestamp}:{body}",
    "timestamp_header": "X-Slack-Request-Timestamp",
    "secrets": "8f742231b10e8888abcd99yyyzzz85a5",
    "format": "form",
    "event_id": "trigger_id",
    "event_type": "command",
}
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)


def test_the_published_vector_of_slack_is_expressible() -> None:
    """https://docs.slack.dev/authentication/verifying-requests-from-slack"""
    source = shop(**SLACK)
    headers = [
        ("X-Slack-Request-Timestamp", "1531420618"),
        ("X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
    ]
    source.verifier.verify(Request("shop", "POST", Headers(headers), SLACK_BODY), 1531420618)
    event = read(source, SLACK_BODY)
    assert event.event_type == "/webhook-collect"
    assert event.event_id == "398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"


def test_the_published_vector_of_paddle_is_expressible() -> None:
    """PaddleHQ/paddle-python-sdk tests/Unit/Notification/test_Verifier.py"""
    source = shop(
        header="Paddle-Signature",
        prefix="h1=",
        separator=";",
        timestamp_item="ts=",
        signed="{timestamp}:{body}",
        secrets="pdl_ntf_01hbpjmytsa32fhr36nqgc3kgb_WvRO0eL4Bj9rgYYIBZY6wZhG4EHy9jzh",
    )
    value = "ts=1696195954;h1=dummy;h1=d96299976a6eb066f484d7fde011ac56fc32b38fc9940bc419d6e537fdc6ef02"
    request = Request("shop", "POST", Headers([("Paddle-Signature", value)]), b"hello-world")
    source.verifier.verify(request, 1696195954)
    with pytest.raises(NotVerified, match="old"):
        source.verifier.verify(request, 1696195954 + 301)


def test_every_algorithm_and_encoding_signs_as_python_does() -> None:
    for algorithm in ("sha1", "sha256", "sha384", "sha512"):
        digest = hmac.new(b"\x44\x78", b"body", algorithm).digest()
        for encoding, value in (("hex", digest.hex()), ("base64", base64.b64encode(digest).decode())):
            source = shop(algorithm=algorithm, encoding=encoding, secrets="4478", secret_encoding="hex")
            source.verifier.verify(Request("shop", "POST", Headers([("x-sig", value)]), b"body"), 0)


def test_several_prefixes_are_accepted() -> None:
    source = shop(prefix=["a=", "b="], separator=None)
    value = hmac.new(b"k-test-1", b"{}", hashlib.sha256).hexdigest()
    source.verifier.verify(Request("shop", "POST", Headers([("X-Sig", f"b={value}")]), b"{}"), 0)


def test_b024_the_id_of_the_body_stays_the_same_over_attempts() -> None:
    source = shop()
    body = b'{"id":"evt_9"}'
    first, second = read(source, body, ("X-Delivery", "a1")), read(source, body, ("X-Delivery", "a2"))
    assert first.event_id == second.event_id == "evt_9"


def test_b020_the_id_is_found_in_the_json_in_a_form(deliver: Callable[[Source, Request], Delivery]) -> None:
    source = shop(format="form", event_id="payload.id", resource="x")
    body = b"payload=%7B%22id%22%3A%22t8%22%7D&x=1&x=2"
    delivery = deliver(source, Request("shop", "POST", Headers(), body))
    assert (delivery.event_id, delivery.resource) == ("t8", "1")
    assert delivery.data == {"payload": ['{"id":"t8"}'], "x": ["1", "2"]}


@pytest.mark.parametrize(
    "body", [b'{"id":""}', b'{"id":null}', b'{"id":0}', b'{"id":" "}', b'{"id":{}}', b"{}", b"[]", b"3"]
)
def test_b026_a_blank_id_is_no_id(body: bytes) -> None:
    event = read(shop(), body)
    assert event.event_id is None
    assert event.unreadable is None


def test_b033_versions_are_numbers_and_times_never_texts() -> None:
    source = shop(resource="r", version="v")
    versions = [read_version(read(source, b'{"v":"%s"}' % text).version) for text in (b"9", b"10", b"9")]
    assert versions[0] == versions[2]
    assert versions[1] == max(version for version in versions if version is not None)
    timed = shop(resource="r", version="v", version_unit="milliseconds")
    assert read_version(read(timed, b'{"v":1700000000500}').version) == read_version("2023-11-14T22:13:20.5Z")


def test_fields_come_from_paths_headers_and_functions() -> None:
    source = shop(
        event_id="header:X-Event-Id",
        event_type=lambda request: f"{request.method}.{len(request.body)}",
        resource="items.0.id",
        version=lambda request: (1, 2),
    )
    event = read(source, b'{"items":[{"id":7}]}', ("x-event-id", "e-1"))
    assert event == Event("e-1", "POST.20", "7", (1, 2))


def test_a_source_tells_whether_it_reads_resource_and_version() -> None:
    assert (shop().has_resource, shop().has_version) == (False, False)
    both = shop(resource="a", version="b")
    assert (both.has_resource, both.has_version) == (True, True)


def test_a_function_that_fails_on_a_request_makes_it_unreadable_with_the_reason() -> None:
    source = shop(event_id="header:X-Id", resource=lambda request: {"x": 1}["missing"])
    event = read(source, b"{}", ("X-Id", "e-1"))
    assert event.event_id == "e-1"
    assert event.unreadable == "the function resource= raised KeyError: 'missing'"


def test_an_unreadable_body_keeps_what_its_headers_say() -> None:
    source = shop(event_id="header:X-Id", event_type="header:X-Type")
    event = read(source, b"\xff", ("X-Id", "e-1"), ("X-Type", "a"))
    assert (event.event_id, event.event_type) == ("e-1", "a")
    assert event.unreadable is not None
    assert read(shop(), b"\xff").event_id is None


def test_bytes_are_given_as_they_are(deliver: Callable[[Source, Request], Delivery]) -> None:
    source = shop(format="bytes", event_id=None, event_type="header:X-Type")
    delivery = deliver(source, Request("shop", "POST", Headers([("X-Type", "a.deleted")]), b"\x00\xff"))
    assert delivery.data == b"\x00\xff"
    assert delivery.deleted


def test_deletions_are_told_by_patterns_or_a_function(
    deliver: Callable[[Source, Request], Delivery],
) -> None:
    request = Request("shop", "POST", Headers(), b'{"type":"user.removed","gone":true}')
    for deleted, expected in (
        (("*.deleted",), False),
        ("user.removed", True),
        (["x", "*.rem*"], True),
        ((), False),
        (lambda delivery: delivery.data["gone"], True),
    ):
        assert deliver(shop(deleted=deleted), request).deleted is expected


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"header": ""}, "is not the name of a header"),
        ({"header": "X Sig"}, "is not the name of a header"),
        ({"header": None}, "is not the name of a header"),
        ({"timestamp_header": " ", "signed": "{timestamp}{body}"}, "is not the name of a header"),
        ({"algorithm": "md5"}, "algorithm='md5'"),
        ({"algorithm": "token"}, "algorithm='token'"),
        ({"encoding": "hexa"}, "encoding='hexa'"),
        ({"secret_encoding": "rot13"}, "secret_encoding='rot13'"),
        ({"signed": "{timestamp}.{bdy}"}, "{bdy}"),
        ({"signed": "{timestamp}", "timestamp_header": "T"}, "lacks {body}"),
        ({"signed": "{timestamp}.{body}"}, "timestamp_header=..."),
        ({"signed": "{id}.{body}"}, "id_header=..."),
        ({"timestamp_header": "T"}, "proves nothing"),
        ({"timestamp_item": "t="}, "proves nothing"),
        ({"timestamp_item": "", "signed": "{timestamp}.{body}"}, "timestamp_item"),
        ({"timestamp_item": "t=", "timestamp_header": "T", "signed": "{timestamp}{body}"}, "not from both"),
        ({"timestamp_unit": "days"}, "timestamp_unit='days'"),
        ({"tolerance": 0}, "tolerance=0"),
        ({"prefix": "a,"}, "prefix='a,'"),
        ({"prefix": []}, "needs a prefix"),
        ({"prefix": None}, "needs a prefix"),
        ({"signed": None}, "signed=None"),
        ({"prefix": [1]}, "prefix=1"),
        ({"separator": ""}, "separator"),
        ({"format": "xml"}, "format='xml'"),
        ({"format": "bytes"}, "event_id='id' is a path, but format=\"bytes\""),
        ({"event_id": ""}, "event_id=''"),
        ({"event_id": 5}, "event_id=5"),
        ({"event_id": "a..b"}, "empty step"),
        ({"resource": "header:"}, "lacks the name"),
        ({"version": "v", "version_unit": "days"}, "version_unit='days'"),
        ({"version_unit": "seconds"}, "without version"),
        ({"deleted": [None]}, "deleted must be"),
        ({"deleted": 5}, "deleted must be"),
    ],
)
def test_a_wrong_option_is_told_in_one_sentence_that_names_the_source(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SetupError) as caught:
        shop(**options)
    assert told in str(caught.value)
    assert str(caught.value).startswith("the source 'shop': ")
