"""Compressed bodies, and accounts that share a source, on their way into the ledger (B012)."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import zlib
from dataclasses import replace

import pytest

from hookledger.errors import BodyTooLarge, NotVerified, UnsupportedEncoding
from hookledger.http import Headers, Request
from hookledger.receive.accept import Accepted, accept
from hookledger.sources.content_coding import ContentEncoding
from hookledger.sources.source import Source, Verified
from tests.receiving import KEY, shop

NOW = 1_700_000_000.0
LARGEST = 1 << 20
PLAIN = json.dumps({"id": "s12", "type": "order.paid"}).encode()
WIRE = gzip.compress(PLAIN, mtime=0)


def request(wire: bytes, signed: bytes, coding: str = "gzip") -> Request:
    signature = hmac.new(KEY.encode(), signed, hashlib.sha256).hexdigest()
    name = "X-Sig"
    return Request("shop", "POST", Headers([(name, signature), ("Content-Encoding", coding)]), wire)


def taking(rule: ContentEncoding) -> Source:
    return replace(shop(), content_encoding=rule)


@pytest.mark.parametrize(
    ("rule", "signed", "refused"),
    [("signed-compressed", WIRE, PLAIN), ("signed-plain", PLAIN, WIRE)],
    ids=["compressed", "plain"],
)
def test_b012_the_source_says_which_bytes_are_signed(rule: ContentEncoding, signed: bytes, refused: bytes) -> None:
    result = accept(taking(rule), request(WIRE, signed), NOW, LARGEST)
    assert isinstance(result, Accepted)
    assert result.body == WIRE  # the ledger keeps the bytes as they came
    assert [event.event_id for event in result.events] == ["s12"]
    with pytest.raises(NotVerified):
        accept(taking(rule), request(WIRE, refused), NOW, LARGEST)


@pytest.mark.parametrize(("rule", "coding"), [("none", "gzip"), ("signed-plain", "br"), ("signed-compressed", "br")])
def test_b012_other_codings_are_refused(rule: ContentEncoding, coding: str) -> None:
    with pytest.raises(UnsupportedEncoding):
        accept(taking(rule), request(WIRE, WIRE, coding), NOW, LARGEST)


@pytest.mark.parametrize("rule", ["signed-plain", "signed-compressed"])
def test_b012_a_bomb_stops_at_the_limit(rule: ContentEncoding) -> None:
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    bomb = b"".join([packer.compress(bytes(1 << 20)) for _ in range(64)]) + packer.flush()
    with pytest.raises(BodyTooLarge):
        accept(taking(rule), request(bomb, bomb), NOW, LARGEST)


def test_equal_ids_of_two_accounts_are_two_events() -> None:
    class Accounts:
        def verify(self, request: Request, now: float) -> Verified:
            return Verified(account=request.query)

    source = replace(shop(), verifier=Accounts())
    keys = []
    for account in ("acme", "other"):
        body = json.dumps({"id": "e1", "type": "t", "resource": "r1"}).encode()
        result = accept(source, Request("shop", "POST", Headers(), body, query=account), NOW, LARGEST)
        assert isinstance(result, Accepted)
        keys += [(event.event_id, event.resource) for event in result.events]
    assert keys == [("acme:e1", "acme:r1"), ("other:e1", "other:r1")]
