"""What is masked, and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookledger.operate.masking import is_secret, is_secret_member, mask_headers, mask_members, scrub, secret_values
from hookledger.sources.catalogue import provider
from tests.unit.sources.made import EVERY

SHOWN = ["Content-Type", "User-Agent", "X-GitHub-Event", "X-Request-Id", "Idempotency-Key", "X-Author", "Keep-Alive"]
MASKED = [
    "Authorization",
    "Proxy-Authorization",
    "cookie",
    "X-Api-Key",
    "X-APIKEY",
    "X-Hub-Signature-256",
    "x-shopify-hmac-sha256",
    "X-MyCompanyToken",
    "X_WEBHOOK_SECRET",
    "PAYPAL-TRANSMISSION-SIG",
    "X-Goog-Channel-Token",
    "X-Password",
    "svix-signature",
]


@pytest.mark.parametrize("name", MASKED)
def test_headers_that_open_something_are_masked(name: str) -> None:
    assert is_secret(name)
    assert mask_headers([(name, "top-secret")]) == [(name, "[masked, 10 characters]")]


@pytest.mark.parametrize("name", SHOWN)
def test_other_headers_are_shown(name: str) -> None:
    assert not is_secret(name)
    assert mask_headers([(name, "value")]) == [(name, "value")]


@pytest.mark.parametrize("name", EVERY)
def test_the_signature_of_every_provider_is_masked(name: str) -> None:
    places = [str(each.signature) for scheme in provider(name).scheme_list for each in scheme.places]
    for place in places:
        if not place.startswith(("query:", "body:")):
            assert is_secret(place.removesuffix("-*"))


def test_members_of_a_body_are_masked_however_deep_and_the_document_is_left() -> None:
    document: Any = {
        "key": "images/1.png",
        "card": [{"client_secret": "top-secret", "id": 1, "token": None}],
        "password": 12,
    }
    before = json.dumps(document)
    assert mask_members(document) == {
        "key": "images/1.png",
        "card": [{"client_secret": "[masked, 10 characters]", "id": 1, "token": None}],
        "password": "[masked, 2 characters]",
    }
    assert json.dumps(document) == before
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    mask_members(deep)
    assert mask_members("token") == "token"


def test_a_secret_under_a_member_that_holds_more_is_found() -> None:
    assert mask_members({"tokens": {"access_token": "top-secret"}}) == {
        "tokens": {"access_token": "[masked, 10 characters]"}
    }
    assert mask_members({"tokens": ["top-secret", {"a": 1}]})["tokens"][0] == "[masked, 10 characters]"
    assert is_secret_member("private-key")
    assert not is_secret_member("monkey")


def test_secrets_of_headers_are_taken_out_of_other_text() -> None:
    headers = [("Stripe-Signature", "t=1700000000,v1=0011223344556677"), ("Host", "0011223344556677-host")]
    values = secret_values(headers)
    assert scrub("bad v1 0011223344556677!", values) == "bad v1 [masked, 16 characters]!"
    assert "0011" not in scrub("got t=1700000000,v1=0011223344556677", values)
    assert scrub("short", secret_values([("X-Token", "short")])) == "short"
