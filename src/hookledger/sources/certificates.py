"""Certificates that providers sign with. Needs the extra `crypto`."""

from __future__ import annotations

import contextlib
import re
import ssl
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hookledger.errors import Cause, KeysUnavailable, NotVerified, SetupError
from hookledger.sources.public_keys import SMALLEST_RSA

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

MOST_CERTIFICATES = 10
"""Certificates of one document; a chain has three or four."""
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----[\sA-Za-z0-9+/=]+-----END CERTIFICATE-----")


class SigningCertificate:
    """The certificate of a key that signs requests.

    Args:
        chain: the certificate itself, and those that it came with.

    Raises:
        NotVerified: if its key is not one of RSA, or too short.
    """

    def __init__(self, chain: Sequence[Certificate]) -> None:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

        self._certificate = chain[0]
        self._others = list(chain[1:])
        try:
            key = self._certificate.public_key()
        except (ValueError, UnsupportedAlgorithm):
            raise _untrusted("has a key that cannot be read") from None
        if not isinstance(key, RSAPublicKey) or key.key_size < SMALLEST_RSA:
            raise _untrusted(f"has no RSA key of {SMALLEST_RSA} bits or more")
        self._key = key

    def require_valid(self, now: float) -> None:
        """Refuse it outside the time that it was issued for.

        Raises:
            NotVerified: if that has not come, or is over.
        """
        moment = datetime.fromtimestamp(now, UTC)
        if not self._certificate.not_valid_before_utc <= moment <= self._certificate.not_valid_after_utc:
            raise _untrusted("is not valid now: its time has not come, or is over")

    def require_trusted(self, domain: str, authorities: Sequence[Certificate], now: float) -> None:
        """Refuse it if it was not issued, by one of the authorities, for a host below a domain.

        Args:
            domain: as "example.com".
            authorities: that are trusted.
            now: Unix time in seconds.

        Raises:
            NotVerified: with the reason.
        """
        from cryptography.x509 import DNSName
        from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

        host = next((name for name in self._names() if name.lower().endswith(f".{domain}") and "*" not in name), None)
        if host is None:
            raise _untrusted(f"was not issued for a host below {domain}")
        policy = PolicyBuilder().store(Store(list(authorities))).time(datetime.fromtimestamp(now, UTC))
        try:
            policy.build_server_verifier(DNSName(host)).verify(self._certificate, self._others)
        except (VerificationError, ValueError) as error:
            raise _untrusted(f"does not lead to a trusted authority: {str(error)[:200]}") from None

    def signed(self, signature: bytes, message: bytes, digest: Literal["SHA1", "SHA256"]) -> bool:
        """Whether a signature (RSASSA-PKCS1-v1_5) of a message was made with its key."""
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

        chosen = hashes.SHA1() if digest == "SHA1" else hashes.SHA256()  # noqa: S303
        try:
            self._key.verify(signature, message, PKCS1v15(), chosen)
        except (InvalidSignature, ValueError):
            return False
        except UnsupportedAlgorithm:
            raise NotVerified(f"OpenSSL does not check signatures with {digest} on this system") from None
        return True

    def _names(self) -> list[str]:
        from cryptography.x509 import DNSName, ExtensionNotFound, SubjectAlternativeName

        try:
            found = self._certificate.extensions.get_extension_for_class(SubjectAlternativeName)
        except (ExtensionNotFound, ValueError):
            return []
        return found.value.get_values_for_type(DNSName)


def read_certificates(document: bytes | None) -> list[Certificate]:
    """The certificates of a PEM document, in order.

    Raises:
        KeysUnavailable: for what is no such document: something else answered in the key server's place.
    """
    from cryptography.x509 import load_pem_x509_certificate

    try:
        found = [load_pem_x509_certificate(each) for each in _PEM.findall(document or b"")[:MOST_CERTIFICATES]]
    except ValueError:
        found = []
    if not found:
        raise KeysUnavailable("the key server sent what is no certificate")
    return found


def read_authorities(given: str) -> tuple[Certificate, ...]:
    """The certificates of trusted authorities.

    Args:
        given: the path of a PEM file, or what stands in one.

    Raises:
        SetupError: if it cannot be read, or holds none.
    """
    try:
        document = given.encode() if given.startswith("-----BEGIN") else Path(given).read_bytes()
        return tuple(read_certificates(document))
    except (OSError, ValueError) as error:
        raise SetupError(f"authorities={given[:200]!r} cannot be read: {error}") from None
    except KeysUnavailable:
        raise SetupError("authorities= holds no certificate in PEM form") from None


@cache
def system_authorities() -> tuple[Certificate, ...]:
    """The authorities that this system trusts, as far as they are kept in files.

    Raises:
        SetupError: if none are found.
    """
    from cryptography.x509 import load_der_x509_certificate

    context = ssl.create_default_context()
    forms = context.get_ca_certs(binary_form=True)
    folder = ssl.get_default_verify_paths().capath
    if not forms and folder is not None:
        # OpenSSL reads a folder only when it needs one of its files.
        for each in sorted(Path(folder).glob("*.0")):
            forms += [ssl.PEM_cert_to_DER_cert(pem.decode()) for pem in _PEM.findall(each.read_bytes())]
    authorities: list[Certificate] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old forms, which nobody here can mend
        for form in forms:
            with contextlib.suppress(ValueError):
                authorities.append(load_der_x509_certificate(form))
    if not authorities:
        raise SetupError("this system has no trusted authorities: install ca-certificates, or set authorities=")
    return tuple(authorities)


def _untrusted(says: str) -> NotVerified:
    return NotVerified(f"the certificate that the request names {says}", Cause.KEY_NOT_TRUSTED)
