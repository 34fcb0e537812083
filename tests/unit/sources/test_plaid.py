"""Plaid: a token with the hash of the body, by a key of its API."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hookledger.errors import Cause, NotVerified, SetupError
from hookledger.http import Headers, Request
from hookledger.sources import Source, plaid
from hookledger.sources.providers.plaid import plaid as provider
from tests.unit.sources.fetched import PLAID_KEY, ec_key, plaid_answer, plaid_request, token
from tests.unit.sources.made import NOW

BODY = provider.example().body
CREDENTIALS = {"client_id": "c-1", "api_secret": "s-secret-1"}


def source(answer: bytes | None = None, **settings: Any) -> Source:
    found = plaid_answer("plaid") if answer is None else answer
    return plaid(**{**CREDENTIALS, "fetch": lambda url, body, headers: found, **settings})


def sent(body: bytes = BODY, at: float = NOW, **changed: Any) -> Request:
    claims = {"iat": int(at), "request_body_sha256": hashlib.sha256(body).hexdigest(), **changed}
    made = token(claims, ec_key("plaid"), "ES256", PLAID_KEY)
    return Request("plaid", "POST", Headers([("plaid-verification", made)]), body)


def refused(where: Source, request: Request, now: float = NOW) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        where.verifier.verify(request, now)
    return caught.value


def test_a_signal_verifies_within_five_minutes() -> None:
    for age in (0, 300, -300):
        source().verifier.verify(sent(at=NOW - age), NOW)
    for age in (301, -301):
        assert refused(source(), sent(at=NOW - age)).cause is Cause.CLOCK
    source(tolerance=3600).verifier.verify(sent(at=NOW - 3000), NOW)


def test_the_indentation_of_the_body_is_signed() -> None:
    compact = json.dumps(json.loads(BODY)).encode()
    assert refused(source(), replace(sent(), body=compact)).cause is Cause.BODY_CHANGED


@pytest.mark.parametrize("digest", [None, 5, "", "\u00e9", hashlib.sha256(BODY).hexdigest().upper(), [], "0" * 64])
def test_a_token_without_the_right_hash_is_refused(digest: Any) -> None:
    assert refused(source(), sent(request_body_sha256=digest)).cause is Cause.BODY_CHANGED


@pytest.mark.parametrize("at", [None, "1700000000", True, float("inf")])
def test_a_token_without_a_time_is_refused(at: Any) -> None:
    assert refused(source(), sent(iat=at)).cause is Cause.TIMESTAMP_MALFORMED


def test_a_key_that_plaid_has_withdrawn_is_refused() -> None:
    withdrawn = plaid_answer("plaid", expired_at=1_650_000_000)
    assert refused(source(withdrawn), sent()).cause is Cause.KEY_NOT_TRUSTED


def test_a_key_of_another_id_or_kind_is_refused() -> None:
    for answer in (
        plaid_answer("plaid", "another"),
        plaid_answer("plaid", kty="RSA"),
        plaid_answer("plaid", alg="HS256"),
    ):
        assert refused(source(answer), sent()).cause is Cause.KEY_NOT_TRUSTED


def test_the_environment_is_where_keys_are_fetched() -> None:
    asked: list[tuple[str, bytes | None]] = []

    def fetch(url: str, body: bytes | None, headers: Sequence[tuple[str, str]]) -> bytes:
        asked.append((url, body))
        assert ("Content-Type", "application/json") in headers
        return plaid_answer("plaid")

    for environment in ("production", "sandbox"):
        source(fetch=fetch, environment=environment).verifier.verify(sent(), NOW)
    assert [url for url, _ in asked] == [
        "https://production.plaid.com/webhook_verification_key/get",
        "https://sandbox.plaid.com/webhook_verification_key/get",
    ]
    assert json.loads(asked[0][1] or b"") == {"client_id": "c-1", "secret": "s-secret-1", "key_id": PLAID_KEY}
    with pytest.raises(SetupError, match="use production or sandbox"):
        source(environment="evil.example/")


def test_the_credentials_are_in_no_repr() -> None:
    found = source()
    assert "s-secret-1" not in repr(found) + repr(found.verifier)


def test_equal_signals_are_events_of_their_own() -> None:
    """Otherwise all but the first of the signals that an account has new transactions would be taken for repeats."""
    ids = {source().read(sent(at=at))[0].event_id for at in (NOW, NOW + 60)}
    assert len(ids) == 2
    assert None not in ids


def test_a_missing_or_foreign_header_is_refused() -> None:
    assert refused(source(), Request("plaid", "POST", Headers(), BODY)).cause is Cause.SIGNATURE_MISSING
    foreign = plaid_request("plaid", BODY, NOW, "another key")
    assert refused(source(), foreign).cause is Cause.NO_MATCH
