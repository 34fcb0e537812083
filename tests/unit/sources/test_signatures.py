"""The verifier on single requests: the faults that people reported in other receivers, and the check values."""

from __future__ import annotations

import hashlib
import hmac
import logging

import pytest

from hookledger.errors import NotVerified, SetupError
from hookledger.http import Headers, Request
from hookledger.sources import Source, github, hmac_source, standard_webhooks, stripe
from hookledger.sources.checks import TOKEN
from hookledger.sources.places import Places
from hookledger.sources.scheme import Scheme
from hookledger.sources.scheme_signer import SchemeSigner
from hookledger.sources.scheme_verifier import SchemeVerifier

KEY = b"k-test-1"
STANDARD_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
NOW = 1_700_000_000
SMALL = b'{"id":"m1"}'

CHECK_VALUES = {
    b"": "761b14150adcbbc9fe6e9af4b4833f0474d688d6af39c9ae692a609f12e8c09e",
    '{"id":"s1","tier":"☕ club"}'.encode(): "2bcfe176626fe5cf2fd66fb876351d60cb35cdb00c81e31a0f610bef27a90b3d",
    b'[{"id":"s2"}]\r\n': "296c00929b62e2389d44504ee28f2c9d36e7cc826abd64b519a2daaed41fcfab",
    b'[{"id":"s2"}]': "6cec461513c9e163ca645ff2b695a19c8ab2f8a814b433ab6a3b2a015b3110dc",
    b'{"b":1.0,  "a":2}': "cc96cd7f47a46a1a5e0d675d6bb73bc8a6772fde956b91a9878bdb0f75409886",
    b'{"a": 2, "b": 1.0}': "f94635446c8ee2474f5dbb6a4c064aaaf10057f882afa94fe2021d8ebb887b74",
    b"payload=%7B%22id%22%3A%22s4%22%7D": "19eb22bc6d709b4ed77531a59a23724394d7f90a6ff5863ff51d9e2f879b2959",
    b'{"id":"s10","n":"caf\xe9"}': "1031cd27700524e26caa813da237847e1bd1f0eb7537c7213d25cd0e220a98d0",
    b'{"id":"t1","note":"a\\u0000b"}': "2754e002fbce98804b25b83817cb7d6b969429f485593e5301e790f7cd8a0fc0",
}


def digest(body: bytes, key: bytes = KEY) -> str:
    return hmac.new(key, body, hashlib.sha256).hexdigest()


def hub(body: bytes) -> tuple[str, str]:
    return "X-Hub-Signature-256", f"sha256={digest(body)}"


def strp(timestamp: int | str, body: bytes) -> tuple[str, str]:
    return "Stripe-Signature", f"t={timestamp},v1={digest(f'{timestamp}.'.encode() + body)}"


def verify(source: Source, body: bytes, *headers: tuple[str, str], now: float = NOW) -> None:
    source.verifier.verify(Request(source.name, "POST", Headers(headers), body), now)


def refused(source: Source, body: bytes, *headers: tuple[str, str], now: float = NOW) -> str:
    with pytest.raises(NotVerified) as caught:
        verify(source, body, *headers, now=now)
    return str(caught.value)


hub_source = github(secrets="k-test-1")
stripe_source = stripe(secrets="k-test-1")
standard_source = standard_webhooks(secrets=STANDARD_SECRET)
shop = hmac_source("shop", header="X-Sig", prefix="v1=", secrets="k-test-1")


@pytest.mark.parametrize(("body", "value"), CHECK_VALUES.items())
def test_check_values_of_the_cases(body: bytes, value: str) -> None:
    verify(hub_source, body, ("X-Hub-Signature-256", f"sha256={value}"))


def test_check_values_of_stripe_and_standard_webhooks() -> None:
    stripe_value = "t=1700000000,v1=4b80711193a4bcbaf9a449c74fe02daef7cc4839557f9b071dc9bb11910eb9bd"
    verify(stripe_source, SMALL, ("Stripe-Signature", stripe_value))
    verify(
        standard_source,
        SMALL,
        ("webhook-id", "msg_1"),
        ("webhook-timestamp", "1700000000"),
        ("webhook-signature", "v1,L12XqR98M5X0aZ3LXCRND8/nqc2+oBeAdSRR9a9KWS4="),
    )


@pytest.mark.parametrize("text", ["☕ club", "😀", "ç", "e\u0301"])
def test_b001_text_beyond_ascii_verifies_as_the_bytes_that_were_sent(text: str) -> None:
    body = f'{{"id":"s1","tier":"{text}"}}'.encode()
    verify(hub_source, body, hub(body))


def test_b002_a_line_end_at_the_end_is_part_of_the_signed_bytes() -> None:
    body = b'[{"id":"s2"}]\r\n'
    verify(hub_source, body, hub(body))
    assert "matches" in refused(hub_source, body[:-2], hub(body))


def test_b003_the_same_object_in_other_bytes_is_refused() -> None:
    first, second = b'{"b":1.0,  "a":2}', b'{"a": 2, "b": 1.0}'
    verify(hub_source, first, hub(first))
    refused(hub_source, second, hub(first))


def test_b004_a_form_body_verifies_as_it_came() -> None:
    body = b"payload=%7B%22id%22%3A%22s4%22%7D"
    verify(hub_source, body, hub(body), ("Content-Type", "application/x-www-form-urlencoded"))
    refused(hub_source, b'{"id":"s4"}', hub(body))


def test_b006_a_signature_made_with_no_key_is_refused() -> None:
    body = b'{"id":"s6"}'
    refused(hub_source, body, ("X-Hub-Signature-256", f"sha256={digest(body, b'')}"))
    with pytest.raises(SetupError):
        SchemeVerifier(hub_source.verifier.scheme, [b""])  # type: ignore[attr-defined]
    with pytest.raises(SetupError):
        SchemeVerifier(hub_source.verifier.scheme, [])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value",
    [
        f"v1={digest(SMALL, b'old')},v1={digest(SMALL)}",
        f"v1={digest(SMALL)},v1={digest(SMALL, b'old')}",
        f"v1={digest(SMALL, b'old')}, v1={digest(SMALL)}",
        f"v1=,v2=x,v1=\xe9\xe9,,=,v1={digest(SMALL)},v1=no hex",
        f"v1={digest(SMALL).upper()}",
    ],
)
def test_b007_any_of_several_signatures_in_one_header_is_enough(value: str) -> None:
    verify(shop, SMALL, ("X-Sig", value))


@pytest.mark.parametrize("value", [f"v0={digest(SMALL)}", digest(SMALL), f"v1=v1={digest(SMALL)}", "v1=", ""])
def test_b007_a_signature_under_no_accepted_key_is_refused(value: str) -> None:
    refused(shop, SMALL, ("X-Sig", value))


def test_b007_the_signatures_of_a_repeated_header_all_count() -> None:
    wrong, right = f"v1={digest(SMALL, b'old')}", f"v1={digest(SMALL)}"
    verify(shop, SMALL, ("X-Sig", wrong), ("x-sig", right))
    verify(shop, SMALL, ("X-Sig", right), ("x-sig", wrong))
    stale = strp(NOW - 1, b"another body")
    verify(stripe_source, SMALL, stale, strp(NOW, SMALL))


def test_b007_any_of_several_secrets_is_enough() -> None:
    rotating = github(secrets=["new-secret", "k-test-1"])
    verify(rotating, SMALL, hub(SMALL))
    verify(rotating, SMALL, ("X-Hub-Signature-256", f"sha256={digest(SMALL, b'new-secret')}"))
    refused(rotating, SMALL, ("X-Hub-Signature-256", f"sha256={digest(SMALL, b'third')}"))


@pytest.mark.parametrize("offset", [3600, 301, 10**12])
def test_b008_a_timestamp_too_far_off_is_refused_both_ways(offset: int) -> None:
    assert "in the future" in refused(stripe_source, SMALL, strp(NOW + offset, SMALL))
    if offset < NOW:
        reason = refused(stripe_source, SMALL, strp(NOW - offset, SMALL))
        assert f"{offset} seconds old" in reason
        assert "300 are allowed" in reason


@pytest.mark.parametrize("offset", [-300, -200, 0, 200, 300])
def test_b008_a_timestamp_within_the_tolerance_is_accepted(offset: int) -> None:
    verify(stripe_source, SMALL, strp(NOW + offset, SMALL))


def test_b008_the_age_is_told_only_for_a_genuine_signature() -> None:
    header = ("Stripe-Signature", f"t={NOW - 3600},v1={digest(b'something else')}")
    assert "matches" in refused(stripe_source, SMALL, header)


@pytest.mark.parametrize(
    "timestamp",
    [
        "",
        "-1",
        "+1700000000",
        "1700000000.5",
        "1e9",
        "0x1",
        "now",
        "9" * 5000,
        "\u0661\u0667" + "\u0660" * 8,
        "²",
        "1_700",
        " ",
    ],
)
def test_a_signed_timestamp_that_is_no_time_is_refused_by_name(timestamp: str) -> None:
    value = f"t={timestamp},v1={digest(timestamp.strip().encode() + b'.' + SMALL)}"
    wire = value.encode().decode("latin-1")
    assert "timestamp" in refused(stripe_source, SMALL, ("Stripe-Signature", wire))


def test_b009_bytes_beyond_ascii_in_a_signature_header_are_a_refusal() -> None:
    for value in ("sha256=\xe9", "\xe9", "sha256=" + "\xe9" * 64, "sha256=\u20ac", "sha256=\ud800", "\x00"):
        refused(hub_source, SMALL, ("X-Hub-Signature-256", value))
    token = Scheme((Places("X-Token"),), algorithm=TOKEN, separator=None)
    request = Request("s", "POST", Headers([("X-Token", "\xd1\x81")]), SMALL)
    with pytest.raises(NotVerified):
        SchemeVerifier(token, [KEY]).verify(request, NOW)
    SchemeVerifier(token, ["\u0441".encode()]).verify(request, NOW)


def test_b010_a_body_that_is_no_utf8_verifies() -> None:
    for accented in (b"\xe9", b"\xc3\xa9", b"\x00\xff"):
        body = b'{"id":"s10","n":"caf' + accented + b'"}'
        verify(hub_source, body, hub(body))
        verify(stripe_source, body, strp(NOW, body))


def test_a_token_verifies_only_when_it_is_equal() -> None:
    scheme = Scheme((Places("Authorization"),), algorithm=TOKEN, prefixes=("Bearer ",), separator=None)
    verifier = SchemeVerifier(scheme, [b"to,ken"])
    verifier.verify(Request("s", "POST", Headers([("authorization", "Bearer to,ken")]), b"any"), NOW)
    for value in ("Bearer to,ke", "Bearer to,kenn", "Bearer to", "to,ken", "Bearer ", "Bearer TO,KEN"):
        with pytest.raises(NotVerified):
            verifier.verify(Request("s", "POST", Headers([("authorization", value)]), b"any"), NOW)
    signed = SchemeSigner(scheme, b"to,ken").sign(b"any", NOW)
    verifier.verify(Request("s", "POST", signed, b"other"), NOW)


def test_the_reason_names_the_missing_header() -> None:
    assert refused(hub_source, SMALL) == "the header X-Hub-Signature-256 is missing"
    assert "webhook-signature or svix-signature is missing" in refused(standard_source, SMALL)
    header = ("webhook-signature", "v1,AAAA")
    assert refused(standard_source, SMALL, header) == "the header webhook-timestamp is missing"
    assert refused(standard_source, SMALL, header, ("webhook-timestamp", str(NOW))) == (
        "the header webhook-id is missing"
    )


def test_the_reason_names_the_form_of_a_malformed_header() -> None:
    assert "sha256=<hex>" in refused(hub_source, SMALL, ("X-Hub-Signature-256", "sha1=abc"))
    assert "t=<timestamp>" in refused(stripe_source, SMALL, ("Stripe-Signature", f"v1={digest(SMALL)}"))


def test_no_reason_and_no_repr_holds_the_secret_or_the_right_signature(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        told = refused(hub_source, SMALL, ("X-Hub-Signature-256", "sha256=" + "0" * 64))
    shown = told + repr(hub_source) + repr(hub_source.verifier) + caplog.text
    assert "k-test-1" not in shown
    assert digest(SMALL) not in shown


def test_a_request_cannot_make_us_hash_the_body_over_and_over() -> None:
    many = [strp(NOW + number, b"another") for number in range(9)]
    assert "more than 8 timestamps" in refused(stripe_source, SMALL, *many, strp(NOW, SMALL))
