"""What `hookledger send` posts, for every provider that can be signed for with a shared secret."""

from __future__ import annotations

import time

import pytest

from hookledger.cli.errors import WrongUse
from hookledger.cli.send import signed_request
from hookledger.sources import Source, stripe
from hookledger.sources.catalogue import provider
from hookledger.sources.checks import HMACS, TOKEN
from hookledger.sources.provider import Provider
from tests.unit.sources.made import EVERY, make

SHARED = (*HMACS, TOKEN)
SENT = [name for name in EVERY if provider(name).can_be_sent]


def source_of(found: Provider) -> Source:
    """With the secret of the sample."""
    return make(found).source


@pytest.mark.parametrize("name", SENT)
def test_what_is_posted_verifies_and_is_read_as_the_sample_is(name: str) -> None:
    made = make(provider(name))
    source, sample = made.source, made.sample
    kept = {"content-type", "content-length", *made.signed_headers}
    own = [": ".join(pair) for pair in sample.headers if pair[0].lower() not in kept]
    request = signed_request(source, sample.body, own=own)
    source.verifier.verify(request, time.time())
    events = source.read(request)
    assert [event.unreadable for event in events] == [None] * len(sample.events)
    wanted = [(each.event.event_type, each.event.resource) for each in sample.events]
    assert [(event.event_type, event.resource) for event in events] == wanted
    assert len(request.headers.all("content-type")) == 1


@pytest.mark.parametrize("name", SENT)
def test_it_verifies_without_headers_of_ones_own(name: str) -> None:
    found = provider(name)
    source, sample = source_of(found), found.example()
    request = signed_request(source, sample.body)
    source.verifier.verify(request, time.time())
    assert [event.unreadable for event in source.read(request)] == [None] * len(sample.events)
    assert request.headers.get("user-agent")


@pytest.mark.parametrize("name", EVERY)
def test_every_provider_with_a_shared_secret_can_be_sent(name: str) -> None:
    found = provider(name)
    if found.scheme_list and found.scheme_list[0].algorithm in SHARED:
        assert found.can_be_sent
    if not found.can_be_sent:
        with pytest.raises(WrongUse, match="cannot be signed for"):
            signed_request(source_of(found), found.example().body)


def test_signed_headers_replace_the_usual_ones_and_ones_own_replace_all() -> None:
    twilio = source_of(provider("twilio"))
    request = signed_request(twilio, b"a=b")
    assert request.headers.all("content-type") == ["application/x-www-form-urlencoded"]
    request = signed_request(twilio, b"a=b", own=["content-type: text/plain", "User-Agent: mine"])
    assert request.headers.all("content-type") == ["text/plain"]
    assert request.headers.all("user-agent") == ["mine"]
    request = signed_request(stripe(secrets="k-test-1"), b"{}", own=["Stripe-Signature: t=1,v1=00"])
    assert request.headers.all("stripe-signature") == ["t=1,v1=00"]
