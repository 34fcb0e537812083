"""Certificates of our own, for providers that sign with one."""

from __future__ import annotations

import datetime
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

FROM = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
UNTIL = datetime.datetime(2040, 1, 1, tzinfo=datetime.UTC)


def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """A private key, made once for each name."""
    return _rsa_key(name, bits)


@cache
def _rsa_key(name: str, bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates)


@cache
def authority(name: str = "Test authority", above: str | None = None) -> x509.Certificate:
    """A certificate authority, of its own or below another."""
    return _certificate(name, rsa_key(name).public_key(), above or name, authority=True)


@cache
def certificate(
    host: str,
    key: str,
    *,
    issuer: str = "Test authority",
    first: datetime.datetime = FROM,
    last: datetime.datetime = UNTIL,
    bits: int = 2048,
) -> x509.Certificate:
    """The certificate of a host, for a key, signed by an authority."""
    return _certificate(host, rsa_key(key, bits).public_key(), issuer, authority=False, first=first, last=last)


def _certificate(
    name: str,
    public: Any,
    issuer: str,
    *,
    authority: bool,
    first: datetime.datetime = FROM,
    last: datetime.datetime = UNTIL,
) -> x509.Certificate:
    signer = rsa_key(issuer)
    built = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(issuer))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(first)
        .not_valid_after(last)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(True, False, False, False, False, authority, authority, False, False), critical=True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if not authority:
        built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return built.sign(signer, SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
