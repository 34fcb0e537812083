"""The test vectors that providers publish, with the requests that they say must be refused; ours are marked so."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hookledger.errors import NotVerified
from hookledger.http import Headers, Request
from hookledger.sources.catalogue import provider, providers

VECTORS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("published_vectors.json").read_text("utf-8"))
REFUSED = [(vector, change) for vector in VECTORS for change in vector.get("refused", [])]


def body_of(vector: dict[str, Any]) -> bytes:
    if "body" in vector:
        return str(vector["body"]).encode()
    body = base64.b64decode(vector["body_base64"])
    assert hashlib.sha256(body).hexdigest() == vector["body_sha256"]
    return body


def verify(vector: dict[str, Any]) -> None:
    source = provider(vector["source"])(secrets=vector["secret"], url=vector.get("url"), **vector.get("settings", {}))
    body = body_of(vector) + vector.get("append", "").encode()
    headers = [(name, value) for name, value in vector["headers"]]
    if "signature" in vector:
        headers = [(n, vector["signature"] if n.endswith("-signature") else v) for n, v in headers]
    request = Request(source.name, vector.get("method", "POST"), Headers(headers), body, query=vector.get("query", ""))
    if "answer" in vector:
        answer = source.answer_probe(request)
        assert answer is not None
        assert answer.body.decode() == vector["answer"]
        return
    source.verifier.verify(request, float(vector.get("now", 1_700_000_000)))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_published_vector_verifies(vector: dict[str, Any]) -> None:
    verify(vector)


@pytest.mark.parametrize(
    ("vector", "change"), REFUSED, ids=[f"{vector['id']} {change['why']}" for vector, change in REFUSED]
)
def test_published_negative_is_refused(vector: dict[str, Any], change: dict[str, Any]) -> None:
    with pytest.raises(NotVerified):
        verify({**vector, **change})


def test_every_vector_has_a_name_of_its_own_and_says_where_it_is_from() -> None:
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS)
    assert all(vector["from"].strip() for vector in VECTORS)
    assert all(vector["id"].startswith("S") == vector.get("self_made", False) for vector in VECTORS)


def test_providers_claim_the_vectors_that_they_have_and_no_others() -> None:
    for each in providers():
        claimed = set(re.findall(r"\bV\d+\b", " ".join(each.verified_by)))
        published = {vector["id"].split()[0] for vector in VECTORS if vector["source"] == each.name}
        assert claimed == {name for name in published if name.startswith("V")}, each.name
