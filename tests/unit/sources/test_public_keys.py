"""Signatures that are checked with a public key."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hookledger.errors import Cause, NotVerified, SecretError, SetupError
from hookledger.http import Headers, Request
from hookledger.sources import public_keys
from hookledger.sources.places import Places
from hookledger.sources.scheme import Scheme
from hookledger.sources.scheme_signer import SchemeSigner
from hookledger.sources.scheme_verifier import SchemeVerifier
from hookledger.sources.secrets import read_secrets
from tests.unit.sources.key_pairs import key_pair

NOW = 1_700_000_000
BODY = b'{"id":"e1"}'


def request(*headers: tuple[str, str], body: bytes = BODY) -> Request:
    return Request("s", "POST", Headers(headers), body)


def refused(verifier: SchemeVerifier, sent: Request) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        verifier.verify(sent, NOW)
    return caught.value


PUBLIC = [
    ("ed25519", "hex", "hex"),
    ("ed25519", "base64", "base64"),
    ("ed25519", "spki", "base64"),
    ("ecdsa-p256-sha256", "spki", "base64"),
    ("ecdsa-p256-sha256", "spki", "hex"),
    ("rsa-sha256", "spki", "base64"),
]


@pytest.mark.parametrize(("algorithm", "key_encoding", "encoding"), PUBLIC)
def test_a_signature_that_a_public_key_checks(algorithm: Any, key_encoding: Any, encoding: Any) -> None:
    scheme = Scheme(
        (Places("X-Sig", "X-Time"),),
        algorithm,
        encoding,
        signed="{timestamp}|{body}",
        key_encoding=key_encoding,
    )
    pair, other = (key_pair(algorithm, key_encoding, encoding, seed) for seed in (0, 1))
    keys = read_secrets("s", [other.public, pair.public], key_encoding, require=scheme.require_key)
    verifier = SchemeVerifier(scheme, keys)
    signed = SchemeSigner(scheme, b"", signer=pair.sign).sign(BODY, NOW)
    assert verifier.verify(request(*signed), NOW).secret == 1
    assert refused(verifier, request(*signed, body=BODY + b" ")).cause is Cause.NO_MATCH
    value = str(signed.get("X-Sig"))
    for damaged in ("", "=", value[:-4], value + "AAAA", "\xe9" + value[1:], "0" * 5000, value[:-1] + "\x00"):
        refused(verifier, request(("X-Sig", damaged), ("X-Time", str(NOW))))
    with pytest.raises(SetupError, match="can check signatures"):
        SchemeSigner(scheme, keys[0])


def test_a_base64_signature_has_one_spelling() -> None:
    pair = key_pair("ed25519", "base64", "base64")
    scheme = Scheme((Places("X-Sig"),), "ed25519", "base64", separator=None, key_encoding="base64")
    verifier = SchemeVerifier(scheme, [base64.b64decode(pair.public)])
    value = pair.sign(BODY)
    verifier.verify(request(("X-Sig", value)), NOW)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    last = alphabet[alphabet.index(value[-3]) ^ 1]
    assert base64.b64decode(value[:-3] + last + "==") == base64.b64decode(value)
    refused(verifier, request(("X-Sig", value[:-3] + last + "==")))


def test_a_public_key_in_pem_is_taken_as_it_stands_in_a_file() -> None:
    pair = key_pair("rsa-sha256", "spki", "base64")
    lines = "\n".join(pair.public[start : start + 64] for start in range(0, len(pair.public), 64))
    pem = f"-----BEGIN PUBLIC KEY-----\n{lines}\n-----END PUBLIC KEY-----\n"
    assert read_secrets("s", pem, "spki") == read_secrets("s", pair.public, "spki")


@pytest.mark.parametrize(
    ("secret", "key_encoding", "algorithm", "told"),
    [
        ("00" * 31, "hex", "ed25519", "is no public key of ed25519"),
        ("zz" * 32, "hex", "ed25519", "must be hex digits"),
        ("AAAA", "spki", "ecdsa-p256-sha256", "is no public key of ecdsa-p256-sha256"),
        ("not base64!", "spki", "ecdsa-p256-sha256", "not base64"),
        (key_pair("ed25519", "spki", "base64").public, "spki", "rsa-sha256", "none of rsa-sha256"),
        (key_pair("rsa-sha256", "spki", "base64").public, "spki", "ecdsa-p256-sha256", "none of ecdsa-p256-sha256"),
    ],
)
def test_a_wrong_public_key_is_told_at_start(secret: str, key_encoding: Any, algorithm: Any, told: str) -> None:
    scheme = Scheme((Places("X-Sig"),), algorithm, key_encoding=key_encoding)
    with pytest.raises(SecretError, match=told) as caught:
        read_secrets("shop", secret, key_encoding, require=scheme.require_key)
    assert str(caught.value).startswith("the source 'shop': the secret ")


def test_weak_keys_and_other_curves_are_told_at_start() -> None:
    keys = {
        "rsa-sha256": (rsa.generate_private_key(65537, 1024), "of 1024 bits"),
        "ecdsa-p256-sha256": (ec.generate_private_key(ec.SECP384R1()), "on the curve secp384r1"),
    }
    for algorithm, (private, told) in keys.items():
        der = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        scheme = Scheme((Places("X-Sig"),), algorithm, key_encoding="spki")  # type: ignore[arg-type]
        with pytest.raises(SecretError, match=told):
            read_secrets("shop", base64.b64encode(der).decode(), "spki", require=scheme.require_key)


def test_a_missing_package_is_told_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_keys, "find_spec", lambda name: None)
    scheme = Scheme((Places("X-Sig"),), "ed25519", key_encoding="hex")
    with pytest.raises(SetupError, match=r"pip install 'hookledger\[crypto\]'"):
        read_secrets("shop", "00" * 32, "hex", require=scheme.require_key)
