"""Why a request did not verify, as it is said to people and to programs."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from hookledger.errors import Cause, NotVerified
from hookledger.http import Headers, Request
from hookledger.sources import Account, Source, github, hmac_source, standard_webhooks, stripe
from hookledger.sources.catalogue import provider
from hookledger.sources.diagnosis import LARGEST_DIAGNOSED, Diagnosis, LogDiagnosis, diagnose
from tests.unit.sources.made import NOW

DOCUMENT = {"b": "caf\u00e9 \u2665 \x1b <b>&\u2028", "a": 1.0, "url": "https://example.com/x", "n": [1, {"z": None}]}
COMPACT = json.dumps(DOCUMENT, separators=(",", ":"), ensure_ascii=False)
ASCII = json.dumps(DOCUMENT, separators=(",", ":"))
source = stripe(secrets=["k-test-1", "k-test-2"])


def sent(signed: bytes, body: bytes | None = None, *, by: Source = source, now: float = NOW) -> Request:
    assert by.sign is not None
    return Request(by.name, "POST", by.sign(signed, now), signed if body is None else body)


def diagnosed(request: Request, *, to: Source = source, now: float = NOW) -> Diagnosis:
    return diagnose(to, request, now)


def test_a_request_that_verifies() -> None:
    found = diagnosed(sent(b"{}"))
    assert (found.verified, found.cause, found.secret) == (True, None, 0)


def test_the_previous_secret() -> None:
    found = diagnosed(sent(b"{}", by=stripe(secrets="k-test-2")))
    assert (found.verified, found.secret) == (True, 1)
    assert "verifies with secret 2" in found.says


def test_the_wrong_secret() -> None:
    found = diagnosed(sent(b"{}", by=stripe(secrets="another")))
    assert (found.verified, found.cause, found.secret) == (False, Cause.WRONG_SECRET, None)
    assert "another" not in found.says.replace("another one's", "")


@pytest.mark.parametrize("offset", [301, 3600, -301, -86400])
def test_the_clock(offset: int) -> None:
    found = diagnosed(sent(b"{}"), now=NOW + offset)
    assert (found.cause, found.details["clock_offset"], found.details["tolerance"]) == (Cause.CLOCK, offset, 300)


REWRITTEN = {
    "compact": COMPACT,
    "spaced": json.dumps(DOCUMENT, ensure_ascii=False),
    "sorted": json.dumps(DOCUMENT, separators=(",", ":"), ensure_ascii=False, sort_keys=True),
    "escaped in lower case": ASCII,
    "escaped in upper case": ASCII.replace("\\u00e9", "\\u00E9").replace("\\u001b", "\\u001B"),
    "spaced and escaped": json.dumps(DOCUMENT),
    "slashes escaped": ASCII.replace("/", "\\/"),
    "html escaped": COMPACT.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
    "indented by two": json.dumps(DOCUMENT, indent=2, ensure_ascii=False),
    "indented by four": json.dumps(DOCUMENT, indent=4, sort_keys=True),
    "compact with a newline": COMPACT + "\n",
}


SORTED = ("sorted", "indented by four")


@pytest.mark.parametrize("original", REWRITTEN)
def test_a_body_that_was_serialised_again(original: str) -> None:
    signed = REWRITTEN[original].encode()
    for how, rewritten in REWRITTEN.items():
        if rewritten.strip() == REWRITTEN[original].strip() or (how in SORTED and original not in SORTED):
            continue  # an order that is lost cannot be found again
        found = diagnosed(sent(signed, rewritten.encode()))
        assert found.cause is Cause.BODY_RESERIALISED, rewritten
        assert found.details["form"]
    assert diagnosed(sent(signed, b'{"quite":"another"}')).cause is Cause.WRONG_SECRET


def test_a_body_that_was_serialised_again_and_signed_with_the_previous_secret_long_ago() -> None:
    request = sent(COMPACT.encode(), json.dumps(DOCUMENT).encode(), by=stripe(secrets="k-test-2"), now=NOW - 4000)
    assert diagnosed(request).cause is Cause.BODY_RESERIALISED


@pytest.mark.parametrize(
    ("signed", "came"),
    [
        (b'[{"id":"s2"}]\r\n', b'[{"id":"s2"}]'),
        (b'{"id":1}\n', b'{"id":1}'),
        (b"no json\n", b"no json"),
        (b'{"id":1}', b'{"id":1}\n'),
        (b'{"id":1}', b'{"id":1}\r\n'),
        (b"a\r\nb\r\n", b"a\nb\n"),
        (b"a\nb\n", b"a\r\nb\r\n"),
    ],
)
def test_b002_a_line_end_that_was_lost_added_or_changed(signed: bytes, came: bytes) -> None:
    assert diagnosed(sent(signed, came)).cause is Cause.LINE_END_CHANGED


@pytest.mark.parametrize(
    ("signed", "came"),
    [
        (b"caf\xe9", "caf\u00e9".encode()),
        (b"\xef\xbb\xbf{}", b"{}"),
    ],
)
def test_b010_bytes_that_were_taken_for_other_text(signed: bytes, came: bytes) -> None:
    assert diagnosed(sent(signed, came)).cause is Cause.BODY_RESERIALISED


def test_a_missing_and_a_malformed_header() -> None:
    found = diagnosed(Request("stripe", "POST", Headers(), b"{}"))
    assert (found.cause, found.details["place"]) == (Cause.SIGNATURE_MISSING, "Stripe-Signature")
    for value in ("", "t=1", "v0=abc", "nonsense"):
        headers = Headers([("Stripe-Signature", value)])
        assert diagnosed(Request("stripe", "POST", headers, b"{}")).cause is Cause.SIGNATURE_MALFORMED
    headers = Headers([("webhook-signature", "v1,AAAA"), ("webhook-id", "a")])
    secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
    found = diagnosed(Request("s", "POST", headers, b"{}"), to=standard_webhooks(secrets=secret))
    assert (found.cause, found.details["place"]) == (Cause.SIGNATURE_MISSING, "webhook-timestamp")


def test_the_signature_of_another_provider() -> None:
    found = diagnosed(sent(b"{}", by=github(secrets="k-test-1")))
    assert found.cause is Cause.OTHER_PROVIDER
    assert "GitHub" in str(found.details["provider"])
    assert "GitHub" in found.says
    assert "'stripe'" in found.says


def test_a_request_of_its_own_provider_that_lacks_the_signature_is_not_taken_for_anothers() -> None:
    request = sent(b"{}", by=github(secrets="k-test-1"))
    unsigned = [pair for pair in request.headers if pair[0] != "X-Hub-Signature-256"]
    found = diagnosed(
        replace(request, headers=Headers([*unsigned, ("Stripe-Signature", "t=1,v1=00")])),
        to=github(secrets="k-test-1"),
    )
    assert (found.cause, found.details["place"]) == (Cause.SIGNATURE_MISSING, "X-Hub-Signature-256")


def test_the_scheme_of_another_provider_in_the_same_header() -> None:
    other = hmac_source("shop", header="Stripe-Signature", secrets=["k-test-2", "k-test-1"])
    for now in (NOW, NOW - 4000):
        found = diagnosed(sent(b"{}", by=stripe(secrets="k-test-1"), now=now), to=other)
        assert (found.cause, found.details["provider"]) == (Cause.OTHER_PROVIDER, "Stripe")
    found = diagnosed(sent(b"{}", by=stripe(secrets="another")), to=other)
    assert found.cause is Cause.WRONG_SECRET


def test_the_secrets_of_an_account_are_tried_like_any_others() -> None:
    asked: list[str] = []

    def secrets_of(request: Request) -> Account:
        asked.append(request.source)
        return Account("acme", "k-test-1")

    many = stripe(secrets=secrets_of)
    assert diagnosed(sent(b'{"a":1}', b'{"a": 1}'), to=many).cause is Cause.BODY_RESERIALISED
    assert len(asked) == 2
    assert diagnosed(sent(b"{}"), to=many).account == "acme"
    assert diagnosed(sent(b"{}"), to=stripe(secrets=lambda _: None)).cause is Cause.UNKNOWN_ACCOUNT


SQUARE = {"secrets": "k-test-1", "url": "https://example.com/hook"}


@pytest.mark.parametrize(
    "url", ["https://example.com/hook/", "http://example.com/hook", "https://internal.example/hook?a=1"]
)
def test_another_url(url: str) -> None:
    square = provider("square")
    request = replace(sent(b"{}", by=square(secrets="k-test-1", url=url)), url=url)
    found = diagnosed(request, to=square(**SQUARE))
    assert (found.cause, found.details["url"]) == (Cause.WRONG_URL, url)
    other = sent(b"{}", by=square(secrets="k-test-1", url="https://elsewhere.example/"))
    assert diagnosed(other, to=square(**SQUARE)).cause is Cause.WRONG_SECRET


def test_another_url_of_code_of_its_own() -> None:
    twilio = provider("twilio")
    request = sent(b"a=b", by=twilio(secrets="k-test-1", url="https://example.com/hook/"))
    found = diagnosed(request, to=twilio(**SQUARE))
    assert (found.cause, found.details["url"]) == (Cause.WRONG_URL, "https://example.com/hook/")


def test_a_compressed_body_is_diagnosed_as_it_was_signed() -> None:
    plain = replace(source, content_encoding="signed-plain")
    request = sent(b'{"a":1}', gzip.compress(b'{"a": 1}'))
    packed = replace(request, headers=Headers([*request.headers, ("content-encoding", "gzip")]))
    assert diagnosed(packed, to=plain).cause is Cause.BODY_RESERIALISED


def test_a_secret_that_is_not_known_by_anything_is_not_looked_for_with_fetched_keys() -> None:
    class Fetched:
        needs_network = True
        asked = 0

        def verify(self, request: Request, now: float) -> None:
            Fetched.asked += 1
            raise NotVerified("no", Cause.NO_MATCH)

    assert diagnosed(sent(b"{}"), to=replace(source, verifier=Fetched())).cause is Cause.NO_MATCH
    assert Fetched.asked == 1


def test_a_verifier_of_the_users_own_keeps_its_reason() -> None:
    class Own:
        def verify(self, request: Request, now: float) -> None:
            raise NotVerified("because")

    found = diagnosed(sent(b"{}"), to=replace(source, verifier=Own()))
    assert (found.says, found.cause) == ("because", Cause.OTHER)


# For the log


def refusal(request: Request) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        source.verifier.verify(request, NOW)
    return caught.value


def explained(log: LogDiagnosis, request: Request) -> Cause:
    return log.explain(source, request, NOW, refusal(request)).cause


def test_the_log_explains_one_refusal_a_second() -> None:
    now = [0.0]
    log = LogDiagnosis(clock=lambda: now[0])
    spoilt = sent(b'{"a":1}', b'{"a": 1}')
    assert explained(log, spoilt) is Cause.BODY_RESERIALISED
    assert explained(log, spoilt) is Cause.NO_MATCH
    now[0] = 1.0
    assert explained(log, spoilt) is Cause.BODY_RESERIALISED


def test_the_log_gives_up_when_it_takes_too_long() -> None:
    ticks = iter(range(1000))
    assert explained(LogDiagnosis(clock=lambda: next(ticks) * 0.01), sent(b'{"a":1}', b'{"a": 1}')) is Cause.NO_MATCH
    ticks = iter(range(1000))
    quick = LogDiagnosis(clock=lambda: next(ticks) * 0.0001)
    assert explained(quick, sent(b'{"a":1}', b'{"a": 1}')) is Cause.BODY_RESERIALISED


def test_the_log_explains_no_large_body() -> None:
    filler = "x" * LARGEST_DIAGNOSED
    spoilt = sent(b'{"a":"%s"}' % filler.encode(), b'{"a": "%s"}' % filler.encode())
    assert explained(LogDiagnosis(), spoilt) is Cause.NO_MATCH
    assert diagnosed(spoilt).cause is Cause.BODY_RESERIALISED


@pytest.mark.parametrize("body", [b"[" * 100_000, b"\xff\xfe", b"9" * 5000, b'{"a":NaN}', b'"\\ud800"', b""])
def test_whatever_came_the_refusal_stands(body: bytes) -> None:
    for signed in (b"{}", body + b"x"):
        spoilt = sent(signed, body)
        if spoilt.body != signed:
            assert explained(LogDiagnosis(), spoilt) in (Cause.WRONG_SECRET, Cause.LINE_END_CHANGED)


def test_a_diagnosis_that_breaks_leaves_the_refusal_as_it_was() -> None:
    class Broken:
        def verify(self, request: Request, now: float) -> Any:
            raise ZeroDivisionError

    error = NotVerified("no", Cause.NO_MATCH)
    assert LogDiagnosis().explain(replace(source, verifier=Broken()), sent(b"{}"), NOW, error) is error


def test_what_is_said_shows_no_secret_and_no_right_signature() -> None:
    request = sent(b'{"a":1}', b'{"a": 1}', by=hmac_source("stripe", header="X-Sig", secrets="k-test-9"))
    right = str(request.headers.get("X-Sig"))
    found = diagnosed(request, to=hmac_source("stripe", header="X-Sig", secrets=["k-test-1", "k-test-9"]))
    assert found.cause is Cause.BODY_RESERIALISED
    assert "k-test" not in found.says + str(found.details)
    assert right not in found.says + str(found.details)
