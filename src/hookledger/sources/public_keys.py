"""Public keys of providers that sign with a private one. Needs the extra `crypto`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Literal

from hookledger.errors import SecretError, SetupError

PublicKeyAlgorithm = Literal["ed25519", "ecdsa-p256-sha256", "rsa-sha256"]
Verifies = Callable[[bytes, bytes], bool]
"""Whether a signature is one of a message."""

SMALLEST_RSA = 2048  # bits


def require_cryptography(what: str) -> None:
    """Tell at start if the package cryptography is missing.

    Raises:
        SetupError: with the command that installs it.
    """
    if find_spec("cryptography") is None:
        raise SetupError(f"{what} needs the package cryptography: pip install 'hookledger[crypto]'")


def public_key(key: bytes, algorithm: PublicKeyAlgorithm) -> Verifies:
    """What checks signatures with a public key.

    Args:
        key: the raw 32 bytes of an Ed25519 key, or the DER form of a SubjectPublicKeyInfo.
        algorithm: what the provider signs with.

    Raises:
        SecretError: if the bytes are no public key of that algorithm. It names the fault, as the end of a sentence.
        SetupError: if the package cryptography is not installed.
    """
    require_cryptography(f"checking signatures of {algorithm}")
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        if algorithm == "ed25519" and len(key) == 32:
            loaded = ed25519.Ed25519PublicKey.from_public_bytes(key)
        else:
            loaded = load_der_public_key(key)  # type: ignore[assignment]
    except (ValueError, UnsupportedAlgorithm):
        raise SecretError(f"is no public key of {algorithm}; copy it again, whole") from None

    # Each closure calls one method of the key; whatever a signature looks like, it is wrong or right.
    if algorithm == "ed25519" and isinstance(loaded, ed25519.Ed25519PublicKey):

        def check(signature: bytes, message: bytes) -> None:
            loaded.verify(signature, message)
    elif algorithm == "ecdsa-p256-sha256" and isinstance(loaded, ec.EllipticCurvePublicKey):
        curve: ec.EllipticCurvePublicKey = loaded
        if not isinstance(curve.curve, ec.SECP256R1):
            raise SecretError(f"is a key on the curve {curve.curve.name}, not P-256")

        def check(signature: bytes, message: bytes) -> None:
            curve.verify(signature, message, ec.ECDSA(SHA256()))
    elif algorithm == "rsa-sha256" and isinstance(loaded, rsa.RSAPublicKey):
        modulus: rsa.RSAPublicKey = loaded
        if modulus.key_size < SMALLEST_RSA:
            raise SecretError(f"is an RSA key of {modulus.key_size} bits; below {SMALLEST_RSA} it can be broken")

        def check(signature: bytes, message: bytes) -> None:
            modulus.verify(signature, message, padding.PKCS1v15(), SHA256())
    else:
        raise SecretError(f"is a public key, but none of {algorithm}")

    def verifies(signature: bytes, message: bytes) -> bool:
        try:
            check(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    return verifies
