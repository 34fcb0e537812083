"""Tokens: the algorithm is the provider's, and whatever else is sent is refused."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from hookledger.errors import Cause, KeysUnavailable, NotVerified
from hookledger.sources.tokens import (
    LONGEST_TOKEN,
    SKEW,
    Token,
    TokenAlgorithm,
    check_times,
    read_key,
    read_key_set,
    sign_token,
    time_in,
)
from tests.unit.sources.certificates_made import rsa_key
from tests.unit.sources.fetched import ec_key, key_document, token

NOW = 1_700_000_000
CLAIMS = {"iss": "me", "iat": NOW}
RSA, EC, SHARED = rsa_key("tokens"), ec_key("tokens"), b"k-test-1"


def encoded(part: Any) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def made_by_hand(header: Any, claims: Any = CLAIMS, key: bytes = SHARED, digest: str = "sha256") -> str:
    signed = f"{encoded(header)}.{encoded(claims)}"
    return f"{signed}.{encoded(hmac.digest(key, signed.encode(), digest))}"


def refused(text: str, algorithm: TokenAlgorithm, key: Any = SHARED) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        Token(text, algorithm).claims(key)
    return caught.value


def test_a_token_of_each_algorithm_says_what_it_claims() -> None:
    assert Token(token(CLAIMS, RSA, "RS256", "k1"), "RS256").claims(RSA.public_key()) == CLAIMS
    assert Token(token(CLAIMS, EC, "ES256", "k1"), "ES256").claims(EC.public_key()) == CLAIMS
    assert Token(sign_token(CLAIMS, SHARED), "HS256").claims(SHARED) == CLAIMS
    assert Token(made_by_hand({"alg": "HS256"}), "HS256").claims(SHARED) == CLAIMS
    assert Token(token(CLAIMS, RSA, "RS256", "k1"), "RS256").key_id == "k1"


def test_one_of_several_secrets_signed_it() -> None:
    made = Token(sign_token(CLAIMS, b"second"), "HS256")
    assert made.claims_of_one([b"first", b"second"]) == (1, CLAIMS)
    with pytest.raises(NotVerified, match="none of the secrets"):
        made.claims_of_one([b"first", b"third"])


@pytest.mark.parametrize("expected", ["RS256", "ES256", "HS256"])
@pytest.mark.parametrize(
    "named", ["none", "None", "NONE", "", None, "HS256", "HS512", "RS256", "PS256", "ES256", 5, []]
)
def test_a_token_that_names_another_algorithm_is_refused_before_any_key_is_looked_at(
    expected: TokenAlgorithm, named: Any
) -> None:
    if named == expected:
        return
    for text in (made_by_hand({"alg": named}), f"{encoded({'alg': named})}.{encoded(CLAIMS)}.AA"):
        with pytest.raises(NotVerified) as caught:
            Token(text, expected)
        assert caught.value.cause is Cause.SIGNATURE_MALFORMED


def test_a_token_without_a_signature_is_refused() -> None:
    for algorithm in ("HS256", "RS256", "ES256"):
        for text in (
            f"{encoded({'alg': 'none'})}.{encoded(CLAIMS)}.",
            f"{encoded({'alg': algorithm})}.{encoded(CLAIMS)}.",
            f"{encoded({'alg': algorithm})}.{encoded(CLAIMS)}",
        ):
            with pytest.raises(NotVerified):
                Token(text, algorithm)


@pytest.mark.parametrize("form", [Encoding.PEM, Encoding.DER])
def test_a_public_key_is_no_shared_secret(form: Encoding) -> None:
    """https://auth0.com/blog/critical-vulnerabilities-in-json-web-token-libraries/"""
    for key, algorithm in ((RSA, "RS256"), (EC, "ES256")):
        public = key.public_key().public_bytes(form, PublicFormat.SubjectPublicKeyInfo)
        for named in ("HS256", algorithm):
            refused(made_by_hand({"alg": named, "kid": "k1"}, key=public), algorithm, key.public_key())  # type: ignore[arg-type]


def test_a_token_of_another_key_is_refused() -> None:
    other = rsa_key("other")
    assert refused(token(CLAIMS, other, "RS256"), "RS256", RSA.public_key()).cause is Cause.NO_MATCH
    assert refused(sign_token(CLAIMS, b"other"), "HS256").cause is Cause.NO_MATCH
    for signature in (b"\0" * 64, b"\0" * 63, b"\xff" * 64, b"\0"):
        signed = f"{encoded({'alg': 'ES256'})}.{encoded(CLAIMS)}.{encoded(signature)}"
        assert refused(signed, "ES256", EC.public_key()).cause is Cause.NO_MATCH


def test_no_character_of_a_token_can_be_changed() -> None:
    for text, algorithm, key in (
        (token(CLAIMS, EC, "ES256", "k1"), "ES256", EC.public_key()),
        (sign_token(CLAIMS, SHARED), "HS256", SHARED),
    ):
        for place, character in enumerate(text):
            for other in {"A", "_", "g", chr(ord(character) ^ 1)} - {character}:
                changed = text[:place] + other + text[place + 1 :]
                refused(changed, algorithm, key)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["crit", "b64"])
def test_extensions_are_refused(name: str) -> None:
    for value in (["exp"], ["b64"], [], False, True, None):
        refused(made_by_hand({"alg": "HS256", name: value}), "HS256")
    refused(made_by_hand({"alg": "HS256", "b64": False, "crit": ["b64"]}), "HS256")


@pytest.mark.parametrize("claims", [b"", b"[]", b"5", b'"x"', b"\xff", b"{", b"[" * 5000, b"null"])
def test_a_token_that_claims_nothing_is_refused(claims: bytes) -> None:
    refused(made_by_hand({"alg": "HS256"}, claims), "HS256")


@pytest.mark.parametrize("key_id", [None, "", 5, "a b", "\n", "x" * 201, "\u00e9", ["k1"]])
def test_a_token_that_names_no_key_is_refused(key_id: Any) -> None:
    with pytest.raises(NotVerified):
        _ = Token(made_by_hand({"alg": "HS256", "kid": key_id}), "HS256").key_id


pieces = st.lists(st.sampled_from(["eyJhbGciOiJIUzI1NiJ9", "e30", ".", "..", "=", "A", "é", "\x00", " "]), max_size=8)


@given(st.text(max_size=80) | st.binary(max_size=80).map(lambda raw: raw.decode("latin-1")) | pieces.map("".join))
def test_whatever_is_no_token_is_refused(text: str) -> None:
    for algorithm in ("HS256", "RS256", "ES256"):
        with pytest.raises(NotVerified):
            Token(text, algorithm).claims(b"another key")  # type: ignore[arg-type]


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=80))
def test_whatever_stands_in_the_parts_of_a_token_is_refused(header: bytes, claims: bytes, signature: bytes) -> None:
    for first in (header, b'{"alg":"ES256"}'):
        refused(f"{encoded(first)}.{encoded(claims)}.{encoded(signature)}", "ES256", EC.public_key())


def test_a_token_that_is_longer_than_any_is_refused() -> None:
    with pytest.raises(NotVerified):
        Token(sign_token({"a": "x" * LONGEST_TOKEN}, SHARED), "HS256")


# Times


def test_a_token_counts_until_it_ends_and_not_before_it_begins() -> None:
    check_times({"exp": NOW + 10, "iat": NOW}, NOW)
    check_times({"exp": NOW, "iat": NOW - 3600}, NOW + SKEW)
    check_times({"exp": NOW + 3600, "iat": NOW, "nbf": NOW}, NOW - SKEW)
    for claims, now, told in (
        ({"exp": NOW, "iat": NOW - 3600}, NOW + SKEW + 1, "3661 seconds old, and expired 61 seconds ago"),
        ({"exp": NOW}, NOW + 100, "100 seconds old, and expired 100"),
        ({"exp": NOW + 3600, "iat": NOW}, NOW - SKEW - 1, "61 seconds in the future"),
        ({"exp": NOW + 3600, "nbf": NOW}, NOW - SKEW - 1, "61 seconds in the future"),
    ):
        with pytest.raises(NotVerified, match=told) as caught:
            check_times(claims, now)
        assert caught.value.cause is Cause.CLOCK


@pytest.mark.parametrize("value", [None, "1700000000", True, [], float("nan"), float("inf"), 1e15, -1e15])
def test_a_token_without_an_end_is_refused(value: Any) -> None:
    for claims in ({"exp": value}, {"exp": NOW + 60, "iat": value}, {}):
        with pytest.raises(NotVerified, match="has no time") as caught:
            check_times(claims, NOW)
        assert caught.value.cause is Cause.TIMESTAMP_MALFORMED
    with pytest.raises(NotVerified):
        time_in({"iat": value}, "iat")


# Keys


def test_keys_of_a_set_are_read_by_their_ids() -> None:
    ours = [key_document(RSA, "k1", "RS256"), key_document(rsa_key("other"), "k2", "RS256")]
    found = read_key_set(json.dumps({"keys": ours}).encode(), "RS256")
    assert list(found) == ["k1", "k2"]
    assert Token(token(CLAIMS, RSA, "RS256"), "RS256").claims(found["k1"]) == CLAIMS


def test_keys_that_are_of_another_kind_or_weak_are_left_out() -> None:
    good = key_document(RSA, "k1", "RS256")
    shared = {"kty": "oct", "k": "c2VjcmV0", "kid": "k1", "alg": "HS256"}
    curve = key_document(ec.generate_private_key(ec.SECP384R1()), "k1", "ES256")
    for document, algorithm in (
        (shared, "RS256"),
        (shared, "HS256"),
        (good, "ES256"),
        (good, "HS256"),
        (key_document(EC, "k1", "ES256"), "RS256"),
        (curve, "ES256"),
        ({**good, "use": "enc"}, "RS256"),
        ({**good, "alg": "RS512"}, "RS256"),
        ({**good, "kid": None}, "RS256"),
        ({**good, "n": "AQAB"}, "RS256"),
        ({**good, "n": 5}, "RS256"),
        ({**good, "e": "!"}, "RS256"),
        ({name: value for name, value in good.items() if name != "n"}, "RS256"),
        ({**key_document(EC, "k1", "ES256"), "x": "AAAA"}, "ES256"),
        ({**key_document(EC, "k1", "ES256"), "crv": "P-521"}, "ES256"),
        (key_document(rsa_key("weak", 1024), "k1", "RS256"), "RS256"),
        (None, "RS256"),
        ([], "RS256"),
        ("key", "RS256"),
    ):
        assert read_key(document, algorithm) is None  # type: ignore[arg-type]
        if document == good:
            continue
        mixed = json.dumps({"keys": [document, {**good, "kid": "good"}]}).encode()
        assert list(read_key_set(mixed, "RS256")) == ["good"]


@pytest.mark.parametrize("document", [None, b"", b"<html>", b"[]", b"{}", b'{"keys": 5}', b"\xff", b"[" * 5000])
def test_what_is_no_set_of_keys_is_503(document: bytes | None) -> None:
    with pytest.raises(KeysUnavailable):
        read_key_set(document, "RS256")


def test_a_token_that_was_made_at_no_time_is_refused() -> None:
    with pytest.raises(NotVerified):
        check_times({"exp": 1, "iat": 10**400}, NOW)
