"""PayPal: the transmission is signed with a certificate of paypal.com, and the body by its CRC-32."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookledger.errors import Cause, NotVerified, SetupError
from hookledger.http import Headers, Request
from hookledger.sources import Source, paypal
from hookledger.sources.keys import LOADS_A_MINUTE
from hookledger.sources.providers.paypal import message
from tests.unit.sources.certificates_made import authority, certificate, pem
from tests.unit.sources.fetched import (
    PAYPAL_CERTIFICATE,
    PAYPAL_HOST,
    fetching,
    paypal_chain,
    paypal_headers,
)
from tests.unit.sources.made import NOW

BODY = b'{"id": "WH-1", "n": "Zo\xc3\xab"}'
TRUSTED = pem(authority()).decode().strip()
VECTORS = json.loads(Path(__file__).with_name("published_messages.json").read_text("utf-8"))


def source(document: bytes = paypal_chain("paypal"), webhook_id: str = "4JH86294D6297924G") -> Source:
    return paypal(webhook_id=webhook_id, fetch=fetching({PAYPAL_CERTIFICATE: document}), authorities=TRUSTED)


def sent(body: bytes = BODY, **changed: str) -> Request:
    pairs = [(name, changed.get(name, value)) for name, value in paypal_headers(body, "paypal")]
    return Request("paypal", "POST", Headers(pairs), body)


def refused(where: Source, request: Request) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        where.verifier.verify(request, NOW)
    return caught.value


def test_the_message_of_the_published_vector_is_that_which_is_signed() -> None:
    (vector,) = VECTORS
    body = base64.b64decode(vector["body_base64"])
    assert hashlib.sha256(body).hexdigest() == vector["body_sha256"]
    built = message(vector["transmission_id"], vector["transmission_time"], vector["webhook_id"].encode(), body)
    assert built.decode() == vector["signed"]


def test_a_transmission_verifies() -> None:
    source().verifier.verify(sent(), NOW)
    source().verifier.verify(sent(b"\xff\x00"), NOW)


@pytest.mark.parametrize("document", [paypal_chain("paypal") + b"\n", pem(certificate(PAYPAL_HOST, "paypal"))])
def test_a_certificate_comes_with_those_between_or_directly_from_an_authority(document: bytes) -> None:
    source(document).verifier.verify(sent(), NOW)


def test_the_body_and_the_webhook_are_covered() -> None:
    assert refused(source(), replace(sent(), body=BODY + b" ")).cause is Cause.NO_MATCH
    assert refused(source(webhook_id="WEBHOOK_ID"), sent()).cause is Cause.NO_MATCH


def test_another_body_with_the_same_checksum_passes_and_the_cautions_say_so() -> None:
    """Why events that move money are to be read anew from PayPal."""
    wanted = zlib.crc32(BODY)
    forged = with_checksum(b'{"id": "forged", "padding": "', wanted)
    assert zlib.crc32(forged) == wanted
    source().verifier.verify(replace(sent(), body=forged), NOW)
    assert "CRC-32" in paypal.cautions


def with_checksum(prefix: bytes, wanted: int) -> bytes:
    """Four bytes make any checksum."""
    table = [_table_entry(index) for index in range(256)]
    state, chosen = wanted ^ 0xFFFFFFFF, []
    for _ in range(4):
        index = next(number for number in range(256) if table[number] >> 24 == state >> 24)
        chosen.append(index)
        state = ((state ^ table[index]) << 8) & 0xFFFFFFFF
    state, added = zlib.crc32(prefix) ^ 0xFFFFFFFF, bytearray()
    for index in reversed(chosen):
        added.append((state & 0xFF) ^ index)
        state = (state >> 8) ^ table[index]
    return prefix + bytes(added)


def _table_entry(index: int) -> int:
    for _ in range(8):
        index = (index >> 1) ^ (0xEDB88320 if index & 1 else 0)
    return index


@pytest.mark.parametrize(
    "url",
    [
        "http://api.paypal.com/v1/notifications/certs/CERT-1",
        "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1",
        "https://evilpaypal.com/v1/notifications/certs/CERT-1",
        "https://api.paypal.com@evil.example/v1/notifications/certs/CERT-1",
        "https://api.paypal.com/upload/CERT-1",
        "https://paypal.com/v1/notifications/certs/CERT-1",
        "",
    ],
)
def test_a_certificate_of_another_place_is_not_fetched(url: str) -> None:
    def fetch(*_: object) -> bytes:
        raise AssertionError("it was fetched")

    where = paypal(webhook_id="4JH86294D6297924G", fetch=fetch, authorities=TRUSTED)
    assert refused(where, sent(**{"PAYPAL-CERT-URL": url})).cause is Cause.KEY_NOT_TRUSTED


def test_urls_that_are_never_fetched_use_up_nothing() -> None:
    where = source()
    for number in range(LOADS_A_MINUTE + 1):
        refused(where, sent(**{"PAYPAL-CERT-URL": f"https://evil.example/v1/notifications/certs/{number}"}))
        refused(where, sent(**{"PAYPAL-CERT-URL": f"https://api.paypal.com/upload/{number}"}))
    where.verifier.verify(sent(), NOW)


@pytest.mark.parametrize("algorithm", ["SHA1withRSA", "sha256withrsa", "SHA256withECDSA", "none", ""])
def test_another_algorithm_is_refused(algorithm: str) -> None:
    assert refused(source(), sent(**{"PAYPAL-AUTH-ALGO": algorithm})).cause is Cause.SIGNATURE_MALFORMED


def test_a_certificate_that_is_forged_old_or_of_another_host_is_refused() -> None:
    old = datetime(2021, 1, 1, tzinfo=UTC)
    for document in (
        pem(certificate(PAYPAL_HOST, "paypal", issuer="Forged"), authority("Forged")),
        pem(certificate(PAYPAL_HOST, "paypal", issuer="Test authority below")),
        pem(certificate("paypal.com.evil.example", "paypal")),
        paypal_chain("paypal", last=old),
    ):
        assert refused(source(document), sent()).cause is Cause.KEY_NOT_TRUSTED
    ours = paypal(webhook_id="4JH86294D6297924G", fetch=fetching({PAYPAL_CERTIFICATE: paypal_chain("paypal")}))
    assert "does not lead to a trusted authority" in str(refused(ours, sent()))


def test_what_separates_the_parts_cannot_stand_in_them() -> None:
    pairs = dict(sent().headers)
    shifted = {
        "PAYPAL-TRANSMISSION-ID": f"{pairs['PAYPAL-TRANSMISSION-ID']}|{pairs['PAYPAL-TRANSMISSION-TIME']}",
    }
    assert refused(source(), sent(**shifted)).cause is Cause.SIGNATURE_MALFORMED
    for signature in ("", "!", "\xe9", "AAAA"):
        refused(source(), sent(**{"PAYPAL-TRANSMISSION-SIG": signature}))


def test_a_missing_header_is_named() -> None:
    for name, _ in sent().headers:
        left = Headers([pair for pair in sent().headers if pair[0] != name])
        error = refused(source(), replace(sent(), headers=left))
        assert error.cause is Cause.SIGNATURE_MISSING
        assert name in str(error)


def test_settings_are_checked_at_start() -> None:
    with pytest.raises(SetupError, match="needs webhook_id="):
        paypal()
    with pytest.raises(SetupError, match="shares no secret"):
        paypal(secrets="k", webhook_id="x")
    with pytest.raises(SetupError, match="authorities="):
        paypal(webhook_id="x", authorities="/nowhere/authorities.pem")
