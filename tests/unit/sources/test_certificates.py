"""Certificates that providers sign with: their time, their chain, and the host that they are for."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1, SHA256

from hookledger.errors import Cause, KeysUnavailable, NotVerified, SetupError
from hookledger.sources.certificates import (
    SigningCertificate,
    read_authorities,
    read_certificates,
    system_authorities,
)
from tests.unit.sources.certificates_made import authority, certificate, pem, rsa_key

NOW = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
HOST = "messageverificationcerts.paypal.com"
BELOW = "Test authority below"
DIRECT = SigningCertificate([certificate(HOST, "signer")])
CHAINED = SigningCertificate(
    [certificate(HOST, "signer", issuer=BELOW), authority(BELOW, "Test authority"), authority("Another")]
)


def test_a_signature_counts_with_its_digest_and_no_other() -> None:
    for digest, name, other in ((SHA1(), "SHA1", "SHA256"), (SHA256(), "SHA256", "SHA1")):
        signature = rsa_key("signer").sign(b"message", PKCS1v15(), digest)
        assert DIRECT.signed(signature, b"message", name)  # type: ignore[arg-type]
        assert not DIRECT.signed(signature, b"message", other)  # type: ignore[arg-type]
        assert not DIRECT.signed(signature, b"massage", name)  # type: ignore[arg-type]
        assert not DIRECT.signed(signature[:-1], b"message", name)  # type: ignore[arg-type]
        assert not DIRECT.signed(b"", b"message", name)  # type: ignore[arg-type]


def test_a_certificate_counts_in_its_time() -> None:
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    short = SigningCertificate([certificate(HOST, "signer", first=first, last=last)])
    short.require_valid(NOW)
    short.require_valid(first.timestamp())
    for moment in (first.timestamp() - 1, last.timestamp() + 1):
        with pytest.raises(NotVerified, match="is not valid now") as caught:
            short.require_valid(moment)
        assert caught.value.cause is Cause.KEY_NOT_TRUSTED


def test_a_chain_that_leads_to_an_authority_is_trusted() -> None:
    DIRECT.require_trusted("paypal.com", [authority()], NOW)
    CHAINED.require_trusted("paypal.com", [authority("Another"), authority()], NOW)
    alone = SigningCertificate([certificate(HOST, "signer", issuer=BELOW)])
    alone.require_trusted("paypal.com", [authority(BELOW, "Test authority")], NOW)


def test_a_chain_that_leads_nowhere_is_not_trusted() -> None:
    alone = SigningCertificate([certificate(HOST, "signer", issuer=BELOW)])
    forged = SigningCertificate([certificate(HOST, "signer", issuer="Forged"), authority("Forged")])
    old = SigningCertificate([certificate(HOST, "signer", last=datetime(2021, 1, 1, tzinfo=UTC))])
    for untrusted in (alone, forged, old):
        with pytest.raises(NotVerified, match="does not lead to a trusted authority") as caught:
            untrusted.require_trusted("paypal.com", [authority()], NOW)
        assert caught.value.cause is Cause.KEY_NOT_TRUSTED
    with pytest.raises(NotVerified, match="does not lead"):
        DIRECT.require_trusted("paypal.com", [authority("Another")], NOW)


@pytest.mark.parametrize("host", ["paypal.com.evil.example", "evilpaypal.com", "paypal.com", "evil.example"])
def test_a_certificate_for_another_host_is_not_trusted(host: str) -> None:
    with pytest.raises(NotVerified, match=r"not issued for a host below paypal\.com"):
        SigningCertificate([certificate(host, "signer")]).require_trusted("paypal.com", [authority()], NOW)
    with pytest.raises(NotVerified, match="not issued for a host"):
        SigningCertificate([authority()]).require_trusted("paypal.com", [authority()], NOW)


def test_this_system_s_authorities_do_not_trust_ours() -> None:
    assert len(system_authorities()) > 10
    with pytest.raises(NotVerified, match="does not lead"):
        CHAINED.require_trusted("paypal.com", system_authorities(), NOW)


def test_the_authorities_are_found_where_a_system_keeps_them_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1a2b3c4d.0").write_bytes(pem(authority()))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    assert ssl.create_default_context().get_ca_certs() == []
    assert system_authorities.__wrapped__() == (authority(),)
    (tmp_path / "1a2b3c4d.0").unlink()
    with pytest.raises(SetupError, match="install ca-certificates"):
        system_authorities.__wrapped__()


def test_authorities_are_read_from_a_file_or_a_text(tmp_path: Path) -> None:
    path = tmp_path / "authorities.pem"
    path.write_bytes(pem(authority(), authority("Another")))
    for given in (str(path), path.read_text()):
        assert read_authorities(given) == (authority(), authority("Another"))
    path.write_text("nothing")
    for wrong, told in (
        (str(path), "holds no certificate"),
        (str(tmp_path / "none"), "cannot be read"),
        ("\0", "null byte"),
    ):
        with pytest.raises(SetupError, match=told):
            read_authorities(wrong)


def test_a_key_that_is_weak_is_refused() -> None:
    with pytest.raises(NotVerified, match="no RSA key of 2048 bits"):
        SigningCertificate([certificate(HOST, "weak", bits=1024)])


@pytest.mark.parametrize(
    "document",
    [
        None,
        b"",
        b"<html></html>",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nAAAA",
    ],
)
def test_what_is_no_certificate_is_503(document: bytes | None) -> None:
    with pytest.raises(KeysUnavailable):
        read_certificates(document)
