"""What a key does: tell whether a signature of a message was made with it, and sign where it can."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol

from hookledger.errors import SetupError
from hookledger.sources.public_keys import PublicKeyAlgorithm, public_key

HmacAlgorithm = Literal["hmac-sha256", "hmac-sha1", "hmac-sha384", "hmac-sha512"]
DigestAlgorithm = Literal["digest-sha256", "digest-sha1"]
Algorithm = HmacAlgorithm | DigestAlgorithm | PublicKeyAlgorithm | Literal["token"]
Encoding = Literal["hex", "base64", "base64url"]

ENCODINGS = ("hex", "base64", "base64url")
HMACS = ("hmac-sha256", "hmac-sha1", "hmac-sha384", "hmac-sha512")
DIGESTS = ("digest-sha256", "digest-sha1")
PUBLIC_KEYS = ("ed25519", "ecdsa-p256-sha256", "rsa-sha256")
TOKEN: Final = "token"  # noqa: S105
ALGORITHMS = (*HMACS, *DIGESTS, *PUBLIC_KEYS, TOKEN)

MOST_PUBLIC_KEY_SIGNATURES = 16
"""Signatures of one request that are tried with a public key; each costs about 0.1 ms."""


class Check(Protocol):
    """One key, ready to check signatures."""

    def matches(self, message: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether one of the signatures, as `comparable` gives them, was made of the message with this key."""

    def sign(self, message: bytes) -> str:
        """The signature as the sender writes it.

        Raises:
            SetupError: if this key can only check.
        """


class _SharedSecret:
    """A key that both sides have: the right signature is computed and compared, in constant time.

    Args:
        digest: of a message; an HMAC with the key, or a plain hash of a message that holds the secret.
        encoding: how it is written.
    """

    __slots__ = ("_digest", "_hex", "_url_safe")

    def __init__(self, digest: Callable[[bytes], bytes], encoding: Encoding) -> None:
        self._digest = digest
        self._hex = encoding == "hex"
        self._url_safe = encoding == "base64url"

    def sign(self, message: bytes) -> str:
        return self._expected(message).decode("ascii")

    def matches(self, message: bytes, signatures: Sequence[bytes]) -> bool:
        expected = self._expected(message)
        for signature in signatures:  # noqa: SIM110  a generator would cost half a microsecond
            if hmac.compare_digest(expected, signature):
                return True
        return False

    def _expected(self, message: bytes) -> bytes:
        digest = self._digest(message)
        if self._hex:
            return binascii.hexlify(digest)
        if self._url_safe:
            return base64.urlsafe_b64encode(digest).rstrip(b"=")
        return binascii.b2a_base64(digest, newline=False)


class _Token:
    """The secret itself is sent. Digests have equal lengths, so that comparing them tells no length."""

    __slots__ = ("_digest", "_written")

    def __init__(self, key: bytes, encoding: Encoding) -> None:
        self._digest = hashlib.sha256(key).digest()
        written = base64.b64encode(key) if encoding == "base64" else key
        self._written = written.decode("latin-1")

    def sign(self, message: bytes) -> str:
        return self._written

    def matches(self, message: bytes, signatures: Sequence[bytes]) -> bool:
        return any(hmac.compare_digest(self._digest, signature) for signature in signatures)


class _PublicKey:
    """A key that can only check."""

    __slots__ = ("_verifies",)

    def __init__(self, key: bytes, algorithm: PublicKeyAlgorithm) -> None:
        self._verifies = public_key(key, algorithm)

    def sign(self, message: bytes) -> str:
        raise SetupError("a public key can check signatures, and make none")

    def matches(self, message: bytes, signatures: Sequence[bytes]) -> bool:
        return any(self._verifies(signature, message) for signature in signatures[:MOST_PUBLIC_KEY_SIGNATURES])


def check(key: bytes, algorithm: Algorithm, encoding: Encoding) -> Check:
    """A key of a scheme, ready to check.

    Raises:
        SecretError: if the bytes are no public key of that algorithm.
        SetupError: if the algorithm needs the package cryptography, and it is not installed.
    """
    if algorithm == "token":
        return _Token(key, encoding)
    if algorithm == "ed25519" or algorithm == "ecdsa-p256-sha256" or algorithm == "rsa-sha256":
        return _PublicKey(key, algorithm)
    kind, _, hash_name = algorithm.partition("-")
    if kind == "hmac":
        return _SharedSecret(lambda message: hmac.digest(key, message, hash_name), encoding)
    return _SharedSecret(lambda message: hashlib.new(hash_name, message).digest(), encoding)


def comparable(algorithm: Algorithm, encoding: Encoding) -> Callable[[bytes], bytes | None]:
    """How a signature is made ready to be compared; None means that it is none, and it is skipped."""
    if algorithm == TOKEN:
        return _token_from_base64 if encoding == "base64" else _token
    if algorithm in PUBLIC_KEYS:
        return _from_hex if encoding == "hex" else _from_base64
    return bytes.lower if encoding == "hex" else bytes


def _token(written: bytes) -> bytes:
    return hashlib.sha256(written).digest()


def _token_from_base64(written: bytes) -> bytes | None:
    token = _from_base64(written)
    return None if token is None else _token(token)


def _from_hex(written: bytes) -> bytes | None:
    try:
        return binascii.unhexlify(written)
    except ValueError:
        return None


def _from_base64(written: bytes) -> bytes | None:
    try:
        decoded = base64.b64decode(written, validate=True)
    except ValueError:
        return None
    # One spelling for one value: bits that the last character has over are not to be changed by anybody.
    return decoded if base64.b64encode(decoded) == written else None
