"""Secrets: a wrong one stops the start with a sentence that names the fault, and never the secret."""

from __future__ import annotations

from typing import Any

import pytest

from hookledger.errors import SecretError, SetupError
from hookledger.http import Request
from hookledger.sources import github, hmac_source, standard_webhooks, stripe
from hookledger.sources.secrets import read_secrets

STANDARD_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"


def refusal(secrets: Any, encoding: Any = "utf-8") -> str:
    with pytest.raises(SecretError) as caught:
        read_secrets("shop", secrets, encoding)
    message = str(caught.value)
    assert message.startswith("the source 'shop': ")
    assert "\n" not in message
    return message


def test_one_secret_or_several_become_keys() -> None:
    assert read_secrets("shop", "k-test-1") == (b"k-test-1",)
    assert read_secrets("shop", b"k-test-1") == (b"k-test-1",)
    assert read_secrets("shop", ["new", b"old", "new"]) == (b"new", b"old")
    assert read_secrets("shop", "It's a Secret to Everybody ♥") == ("It's a Secret to Everybody ♥".encode(),)
    assert read_secrets("shop", b"\xff\x0a") == (b"\xff\x0a",)
    assert read_secrets("shop", "caf\udce9") == (b"caf\xe9",)


def test_b005_a_standard_secret_with_something_in_front_is_refused_with_the_right_form() -> None:
    with pytest.raises(SecretError, match="something in front of 'whsec_'"):
        standard_webhooks("billing", secrets="v1,whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3")


@pytest.mark.parametrize(
    ("secret", "fault"),
    [
        ("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "must begin with 'whsec_'"),
        ("whsec_MDEyMzQ1Njc4OWFi*2RlZjAxMjM0NTY3", "not base64"),
        ("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3A", "not base64"),
        ("whsec_MDEyMzQ1 Njc4OWFiY2RlZjAxMjM0NTY3", "not base64"),
        ("whsec_MDEy=MzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "not base64"),
        ("whsec_♥", "not base64"),
        ("whsec_", "no bytes"),
        ("whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=", "'whpk_'"),
        ('"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"', "something in front"),
    ],
)
def test_a_damaged_standard_secret_is_refused(secret: str, fault: str) -> None:
    message = refusal(secret, "whsec")
    assert fault in message
    assert secret.removeprefix("whsec_")[:8] not in message or secret == "whsec_"


def test_a_standard_secret_is_taken_without_its_padding() -> None:
    assert (
        read_secrets("shop", "whsec_MDEyMw", "whsec") == read_secrets("shop", "whsec_MDEyMw==", "whsec") == (b"0123",)
    )


@pytest.mark.parametrize(
    ("secrets", "fault"),
    [
        ("", "is empty"),
        (b"", "is empty"),
        (" ", "is blank"),
        ("\n", "is blank"),
        ("\ufeff", "is blank"),
        (None, "environment variable"),
        ([], "empty list"),
        ((), "empty list"),
        (["k-test-1", ""], "secret 2 is empty"),
        (["k-test-1", None], "secret 2 is None"),
        (["k-test-1", ["k"]], "secret 2 must be text, not list"),
        (42, "not int"),
        ({"secret": "k-test-1"}, "not dict"),
        ({"k-test-1"}, "not set"),
        ("k\ud800", "surrogate"),
        ("one\ntwo", "line break"),
        ("one\x00", "control character"),
    ],
)
def test_b006_what_is_no_secret_is_refused(secrets: Any, fault: str) -> None:
    assert fault in refusal(secrets)


@pytest.mark.parametrize("build", [stripe, github, standard_webhooks])
@pytest.mark.parametrize("secret", ["", " ", None, []])
def test_b006_no_source_starts_without_a_secret(build: Any, secret: Any) -> None:
    with pytest.raises(SecretError):
        build(secrets=secret)
    with pytest.raises(SecretError):
        hmac_source("shop", header="X-Sig", secrets=secret)


@pytest.mark.parametrize(
    ("secret", "fault"),
    [
        ("k-test-1\n", "ends with a newline"),
        (b"k-test-1\n", "ends with a newline"),
        ("k-test-1\r\n", "ends with a newline"),
        ("k-test-1 ", "ends with white space"),
        ("\tk-test-1", "begins with white space"),
        ("\u00a0k-test-1", "begins with white space"),
        ("\ufeffk-test-1", "byte order mark"),
    ],
)
def test_b011_white_space_around_a_secret_is_refused_by_name(secret: Any, fault: str) -> None:
    message = refusal(secret)
    assert fault in message
    assert "k-test-1" not in message


@pytest.mark.parametrize("prefix", ["sk_", "pk_", "rk_"])
def test_an_api_key_of_stripe_is_no_endpoint_secret(prefix: str) -> None:
    with pytest.raises(SecretError, match="API key") as caught:
        stripe(secrets=f"{prefix}test_51Habc")
    assert "51Habc" not in str(caught.value)


def test_the_key_of_stripe_is_the_whole_secret() -> None:
    source = stripe(secrets=STANDARD_SECRET)
    other = hmac_source(
        "other",
        header="Stripe-Signature",
        prefix="v1=",
        timestamp_item="t=",
        signed="{timestamp}.{body}",
        secrets=STANDARD_SECRET.encode(),
    )
    assert other.sign is not None
    source.verifier.verify(Request("stripe", "POST", other.sign(b"{}", 5), b"{}"), 5)


def test_keys_written_in_hex_or_base64_are_decoded() -> None:
    assert read_secrets("shop", "44782DEf", "hex") == (b"\x44\x78\x2d\xef",)
    assert read_secrets("shop", "MDEyMw==", "base64") == (b"0123",)
    assert "hex digits" in refusal("44782DE", "hex")
    assert "hex digits" in refusal("whsec_44", "hex")
    assert "not base64" in refusal("a-b", "base64")
    assert "no text" in refusal(b"\xff\xfe", "base64")
    with pytest.raises(SetupError, match="secret_encoding='rot13'"):
        read_secrets("shop", "x", "rot13")  # type: ignore[arg-type]
