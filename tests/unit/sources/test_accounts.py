"""Secrets as a function of the request: one endpoint, many accounts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hookledger.errors import Cause, NotVerified, SecretError, Unavailable
from hookledger.http import Headers, Request
from hookledger.sources import Account, github, stripe
from hookledger.sources.accounts import keyed
from hookledger.sources.catalogue import provider
from tests.unit.sources.made import NOW

BODY = b'{"event":"endpoint.url_validation","payload":{"plainToken":"abc"}}'
SECRETS = {"acme": ["new-secret", "old-secret"], "blue": "k-blue"}


def secrets_of(request: Request) -> Account | None:
    name = request.query
    return Account(name, SECRETS[name]) if name in SECRETS else None


source = provider("zoom")("zoom", secrets=secrets_of)


def sent(account: str, secret: str, body: bytes = BODY) -> Request:
    one = provider("zoom")(secrets=secret)
    assert one.sign is not None
    return Request("zoom", "POST", one.sign(body, NOW), body, query=account)


def verified(account: str, secret: str) -> tuple[str | None, int]:
    found = source.verifier.verify(sent(account, secret), NOW)
    assert found is not None
    return found.account, found.secret


def test_a_request_verifies_with_the_secrets_of_its_account_only() -> None:
    assert verified("acme", "new-secret") == ("acme", 0)
    assert verified("acme", "old-secret") == ("acme", 1)
    assert verified("blue", "k-blue") == ("blue", 0)
    for account, secret in (("acme", "k-blue"), ("blue", "new-secret")):
        with pytest.raises(NotVerified) as caught:
            verified(account, secret)
        assert caught.value.cause is Cause.NO_MATCH


def test_an_unknown_account_is_401() -> None:
    with pytest.raises(NotVerified) as caught:
        verified("other", "k-blue")
    assert (caught.value.cause, caught.value.status) == (Cause.UNKNOWN_ACCOUNT, 401)


def test_a_handshake_is_signed_with_the_secret_of_the_account() -> None:
    first, second = (source.handshake(sent(*each)) for each in (("acme", "old-secret"), ("blue", "k-blue")))
    assert first is not None
    assert second is not None
    assert first.body != second.body
    alone = provider("zoom")(secrets="old-secret").handshake(sent("", "old-secret"))
    assert alone == first


def test_secrets_may_come_without_an_account() -> None:
    kept: list[str] = []
    single = github(secrets=lambda request: kept)  # type: ignore[arg-type, return-value]
    request = Request("github", "POST", Headers(), b"{}")
    with pytest.raises(Unavailable, match="empty list"):
        single.verifier.verify(request, NOW)
    kept.append("k-test-1")
    sign = github(secrets="k-test-1").sign
    assert sign is not None
    found = single.verifier.verify(Request("github", "POST", sign(b"{}", NOW), b"{}"), NOW)
    assert found is not None
    assert found.account is None


@pytest.mark.parametrize(
    "given",
    [
        Account("acme", ""),
        Account("acme", " k"),
        Account("acme", [None]),  # type: ignore[list-item]
        Account("", "k"),
        Account("a:b", "k"),
        Account("a b", "k"),
        Account("a" * 101, "k"),
        Account("acme", {"k": 1}),  # type: ignore[arg-type]
        42,
        "",
        [],
    ],
    ids=repr,
)
def test_what_is_no_secret_is_503_and_shown_to_nobody(given: Any) -> None:
    broken = stripe(secrets=lambda request: given)
    with pytest.raises(Unavailable) as caught:
        broken.verifier.verify(Request("stripe", "POST", Headers(), b"{}"), NOW)
    assert caught.value.status == 503


def test_a_function_that_fails_is_503(caplog: pytest.LogCaptureFixture) -> None:
    def fails(request: Request) -> Account:
        raise ConnectionError("password=hunter2")

    broken = stripe(secrets=fails)
    with pytest.raises(Unavailable, match="ConnectionError") as caught:
        broken.verifier.verify(Request("stripe", "POST", Headers(), b"{}"), NOW)
    assert "hunter2" not in str(caught.value)
    assert "the secrets of a request to stripe could not be had" in caplog.text


def test_an_async_function_is_refused_at_start() -> None:
    async def later(request: Request) -> Account | None:
        await asyncio.sleep(0)
        return None

    class Later:
        async def __call__(self, request: Request) -> Account | None:
            return None

    for function in (later, Later()):
        with pytest.raises(SecretError, match="async"):
            stripe(secrets=function)  # type: ignore[arg-type]


def test_such_a_source_is_verified_in_a_thread_and_signs_nothing() -> None:
    assert source.needs_network
    assert source.sign is None
    assert not github(secrets="k").needs_network


def test_the_account_is_a_part_of_the_keys() -> None:
    assert keyed("acme.myshopify.com", "evt_1") == "acme.myshopify.com:evt_1"
    assert keyed(None, "evt_1") == "evt_1"
    assert len({keyed("a", "b:c"), keyed("a", "b"), keyed("ab", "c")}) == 3


def test_no_repr_shows_the_secrets() -> None:
    assert "new-secret" not in repr(Account("acme", ["new-secret"])) + repr(source)
