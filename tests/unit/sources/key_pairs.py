"""Key pairs of our own, for providers that sign with a private key."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


@dataclass(frozen=True)
class KeyPair:
    """A public key as a provider shows it, and what signs with the private one.

    Args:
        public: in the provider's spelling.
        sign: gives the written signature of a message.
        private: the key object.
    """

    public: str
    sign: Callable[[bytes], str]
    private: Any


@cache
def key_pair(algorithm: str, key_encoding: str, encoding: str, seed: int = 0) -> KeyPair:
    """A key pair, made once for each seed."""
    sign: Callable[[bytes], bytes]
    private: Any
    if algorithm == "ed25519":
        private = ed25519.Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"%d" % seed).digest())
        sign = private.sign
    elif algorithm == "ecdsa-p256-sha256":
        private = ec.generate_private_key(ec.SECP256R1())
        sign = lambda message: private.sign(message, ec.ECDSA(SHA256()))  # noqa: E731
    else:
        private = rsa.generate_private_key(65537, 2048)
        sign = lambda message: private.sign(message, padding.PKCS1v15(), SHA256())  # noqa: E731
    public = private.public_key()
    if key_encoding == "spki":
        shown = base64.b64encode(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()
    else:
        raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
        shown = raw.hex() if key_encoding == "hex" else base64.b64encode(raw).decode()

    def written(message: bytes) -> str:
        signature = sign(message)
        return signature.hex() if encoding == "hex" else base64.b64encode(signature).decode()

    return KeyPair(shown, written, private)
