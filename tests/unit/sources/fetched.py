"""How providers sign whose keys are fetched, with keys of our own: a stand-in for Amazon, PayPal, Plaid and Google."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1, SHA256

from hookledger.errors import UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources.providers import aws_sns, paypal
from hookledger.sources.reading import read_json
from tests.unit.sources.certificates_made import authority, certificate, pem, rsa_key

SNS_CERTIFICATE = "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem"
PAYPAL_CERTIFICATE = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-a5cafa77"
PAYPAL_HOST = "messageverificationcerts.paypal.com"
PLAID_KEY = "bfbd5111-8e33-4643-8ced-b2e642a72f3c"
GOOGLE_KEY = "f9d97b4cae90bcd76aeb20026f6b770cac221783"


@dataclass(frozen=True)
class Signer:
    """One that signs as a provider does.

    Args:
        settings: of the source, so that it gets the keys.
        sign: a request to a source, of a body and a time.
    """

    settings: dict[str, Any] = field(repr=False)
    sign: Callable[[str, bytes, float], Request]


def fetching(documents: dict[str, bytes]) -> Callable[..., bytes | None]:
    """A `fetch=` that gives these documents, and None for others."""

    def fetch(url: str, body: bytes | None, headers: Sequence[tuple[str, str]]) -> bytes | None:
        return documents.get(url)

    return fetch


def sns_body(body: bytes, key: str, *, version: str = "1", url: str = SNS_CERTIFICATE) -> bytes:
    """A message of SNS with its signature.

    Raises:
        UnreadableBody: for what is no such message.
    """
    message = read_json(body)
    kind = message.get("Type") if isinstance(message, dict) else None
    if not isinstance(kind, str) or kind not in aws_sns.SIGNED:
        raise UnreadableBody("no message of SNS")
    signed = aws_sns.canonical(message, aws_sns.SIGNED[kind])
    signature = rsa_key(key).sign(signed, PKCS1v15(), SHA1() if version == "1" else SHA256())
    message |= {"SignatureVersion": version, "Signature": base64.b64encode(signature).decode(), "SigningCertURL": url}
    return json.dumps(message).encode()


def _sns(seed: int) -> Signer:
    key = f"sns {seed}"
    documents = {SNS_CERTIFICATE: pem(certificate("sns.amazonaws.com", key))}

    def sign(source: str, body: bytes, now: float) -> Request:
        return Request(source, "POST", Headers(), sns_body(body, key))

    return Signer({"fetch": fetching(documents)}, sign)


def paypal_headers(
    body: bytes, key: str, *, webhook_id: str = "4JH86294D6297924G", url: str = PAYPAL_CERTIFICATE
) -> Headers:
    """The headers of a transmission of PayPal."""
    transmission, at = "dfb3be50-fd74-11e4-8bf3-77339302725b", "2026-03-02T09:16:03Z"
    signed = paypal.message(transmission, at, webhook_id.encode(), body)
    signature = base64.b64encode(rsa_key(key).sign(signed, PKCS1v15(), SHA256())).decode()
    return Headers(
        [
            (paypal.ID, transmission),
            (paypal.TIME, at),
            (paypal.SIGNATURE, signature),
            (paypal.CERTIFICATE, url),
            (paypal.ALGORITHM_NAME, "SHA256withRSA"),
        ]
    )


def paypal_chain(key: str, **settings: Any) -> bytes:
    """The document at PAYPAL-CERT-URL: the certificate, and the one between it and the authority."""
    below = authority("Test authority below", "Test authority")
    return pem(certificate(PAYPAL_HOST, key, **{"issuer": "Test authority below", **settings}), below)


def _paypal(seed: int) -> Signer:
    key = f"paypal {seed}"

    def sign(source: str, body: bytes, now: float) -> Request:
        return Request(source, "POST", paypal_headers(body, key), body)

    documents = {PAYPAL_CERTIFICATE: paypal_chain(key)}
    return Signer({"fetch": fetching(documents), "authorities": pem(authority()).decode().strip()}, sign)


@cache
def ec_key(name: str) -> ec.EllipticCurvePrivateKey:
    """A private key for ES256, made once for each name."""
    return ec.generate_private_key(ec.SECP256R1())


def key_document(key: Any, key_id: str, algorithm: str, **more: Any) -> dict[str, Any]:
    """The public part of a private key as a JSON Web Key."""
    of = jwt.algorithms.ECAlgorithm if algorithm == "ES256" else jwt.algorithms.RSAAlgorithm
    return {**json.loads(of.to_jwk(key.public_key())), "kid": key_id, "alg": algorithm, "use": "sig", **more}


def token(claims: dict[str, Any], key: Any, algorithm: str, key_id: str | None = None, **headers: Any) -> str:
    """A token as its issuer makes it."""
    named = {**headers, **({} if key_id is None else {"kid": key_id})}
    return jwt.PyJWS().encode(json.dumps(claims).encode(), key, algorithm, headers=named)


def plaid_request(source: str, body: bytes, now: float, key: str, key_id: str = PLAID_KEY) -> Request:
    """A signal of Plaid."""
    claims = {"iat": int(now), "request_body_sha256": hashlib.sha256(body).hexdigest()}
    return Request(source, "POST", Headers([("Plaid-Verification", token(claims, ec_key(key), "ES256", key_id))]), body)


def plaid_answer(key: str, key_id: str = PLAID_KEY, **more: Any) -> bytes:
    """What Plaid's API answers."""
    found = key_document(ec_key(key), key_id, "ES256", created_at=1_600_000_000, expired_at=None)
    return json.dumps({"key": {**found, **more}, "request_id": "RZ6Omi1bzzwDaLo"}).encode()


def _plaid(seed: int) -> Signer:
    key = f"plaid {seed}"

    def fetch(url: str, body: bytes | None, headers: Sequence[tuple[str, str]]) -> bytes | None:
        asked = json.loads(body or b"{}")
        return plaid_answer(key) if asked["key_id"] == PLAID_KEY else None

    return Signer({"fetch": fetch}, lambda source, body, now: plaid_request(source, body, now, key))


def google_claims(now: float, **changed: Any) -> dict[str, Any]:
    """What a token of Google claims."""
    return {
        "aud": "https://example.com/webhooks/google-pubsub",
        "azp": "113774264463038321964",
        "email": "push@example-project.iam.gserviceaccount.com",
        "email_verified": True,
        "exp": int(now) + 3600,
        "iat": int(now),
        "iss": "https://accounts.google.com",
        "sub": "113774264463038321964",
        **changed,
    }


def key_set(*keys: dict[str, Any]) -> bytes:
    """A set of keys."""
    return json.dumps({"keys": keys}).encode()


def _pubsub(seed: int) -> Signer:
    key = rsa_key(f"google {seed}")
    documents = {"https://www.googleapis.com/oauth2/v3/certs": key_set(key_document(key, GOOGLE_KEY, "RS256"))}

    def sign(source: str, body: bytes, now: float) -> Request:
        made = token(google_claims(now), key, "RS256", GOOGLE_KEY)
        return Request(source, "POST", Headers([("Authorization", f"Bearer {made}")]), body)

    return Signer({"fetch": fetching(documents)}, sign)


FETCHED: dict[str, Callable[[int], Signer]] = {
    "aws-sns": cache(_sns),
    "google-pubsub": cache(_pubsub),
    "paypal": cache(_paypal),
    "plaid": cache(_plaid),
}
"""For a provider whose requests neither its secret nor a key pair of ours can sign: what signs them, by a number."""
