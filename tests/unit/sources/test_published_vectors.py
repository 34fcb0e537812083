"""The test vectors that providers publish, with the requests that they say must be refused."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from hookledger.errors import NotVerified
from hookledger.http import Headers, Request
from hookledger.sources import Source, github, standard_webhooks, stripe

VECTORS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("published_vectors.json").read_text("utf-8"))
SOURCES = {"github": github, "stripe": stripe, "standard-webhooks": standard_webhooks}
REFUSED = [(vector, change) for vector in VECTORS for change in vector.get("refused", [])]


def body_of(vector: dict[str, Any]) -> bytes:
    if "body" in vector:
        return str(vector["body"]).encode()
    body = base64.b64decode(vector["body_base64"])
    assert hashlib.sha256(body).hexdigest() == vector["body_sha256"]
    return body


def verify(vector: dict[str, Any]) -> None:
    source: Source = SOURCES[vector["source"]](secrets=vector["secret"])
    body = body_of(vector) + vector.get("append", "").encode()
    headers = [(name, value) for name, value in vector["headers"]]
    if "signature" in vector:
        headers = [(n, vector["signature"] if n.endswith("-signature") else v) for n, v in headers]
    source.verifier.verify(
        Request(source.name, "POST", Headers(headers), body), float(vector.get("now", 1_700_000_000))
    )


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_published_vector_verifies(vector: dict[str, Any]) -> None:
    verify(vector)


@pytest.mark.parametrize(
    ("vector", "change"), REFUSED, ids=[f"{vector['id']} {change['why']}" for vector, change in REFUSED]
)
def test_published_negative_is_refused(vector: dict[str, Any], change: dict[str, Any]) -> None:
    with pytest.raises(NotVerified):
        verify({**vector, **change})
