"""Microsoft Graph: the client state of every notification, tokens where there is data, and signals without an id."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookledger.errors import Cause, NotVerified
from hookledger.http import Headers, Request
from hookledger.sources import Source, microsoft_graph
from tests.unit.sources.certificates_made import rsa_key
from tests.unit.sources.fetched import fetching, key_document, key_set, token
from tests.unit.sources.made import NOW

APP, TENANT, KEY = "8e460676-ae3f-4b1e-8790-ee0fb5d6148f", "84bd8158-6d4d-4958-8b9f-9d6445542f95", "k1"
KEYS = {
    "https://login.microsoftonline.com/common/discovery/v2.0/keys": key_set(
        key_document(rsa_key("microsoft"), KEY, "RS256")
    )
}
ITEM = {"subscriptionId": "s-1", "changeType": "updated", "resource": "me/drive/root", "clientState": "new"}
RICH = {**ITEM, "tenantId": TENANT, "encryptedContent": {"data": "x"}}

basic = microsoft_graph(secrets=["new", "old"])


def rich() -> Source:
    return microsoft_graph(secrets=["new", "old"], app_id=APP, fetch=fetching(KEYS))


def sent(*items: Any, **more: Any) -> Request:
    return Request("microsoft-graph", "POST", Headers(), json.dumps({"value": items, **more}).encode())


def refused(source: Source, request: Request, now: float = NOW) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        source.verifier.verify(request, now)
    return caught.value


def validation(**changed: Any) -> str:
    claims = {
        "aud": APP,
        "iss": f"https://sts.windows.net/{TENANT}/",
        "iat": NOW,
        "nbf": NOW,
        "exp": NOW + 3600,
        "tid": TENANT,
        "appid": "0bf30f3b-4a52-48df-9a82-234910c4a086",
        **changed,
    }
    return token(claims, rsa_key("microsoft"), "RS256", KEY)


def test_notifications_with_our_client_states_verify() -> None:
    assert not basic.needs_network
    basic.verifier.verify(sent(ITEM), NOW)
    found = basic.verifier.verify(sent(ITEM, {**ITEM, "clientState": "old"}), NOW)
    assert found is not None
    assert found.secret == 1


@pytest.mark.parametrize("state", ["New", "new ", "", None, 5, ["new"], "\u00e9"])
def test_one_notification_of_another_client_state_refuses_all(state: Any) -> None:
    foreign = {**ITEM, "clientState": state}
    for items in ((foreign,), (ITEM, foreign), (foreign, ITEM)):
        refused(basic, sent(*items))
    assert "notification 1 has another clientState" in str(refused(basic, sent(ITEM, {**ITEM, "clientState": "x"})))


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"value": []}', b'{"value": [5]}', b'{"value": {}}', b"\xff"])
def test_what_has_no_notifications_is_refused(body: bytes) -> None:
    refused(basic, Request("microsoft-graph", "POST", Headers(), body))


def test_notifications_with_data_need_a_token_of_microsoft_for_their_tenant() -> None:
    source = rich()
    assert source.needs_network
    source.verifier.verify(sent(RICH, validationTokens=[validation()]), NOW)
    version_2 = validation(
        iss=f"https://login.microsoftonline.com/{TENANT}/v2.0", appid=None, azp=("0bf30f3b-4a52-48df-9a82-234910c4a086")
    )
    source.verifier.verify(sent(RICH, validationTokens=[version_2]), NOW)
    source.verifier.verify(sent(ITEM), NOW)
    assert refused(source, sent(RICH)).cause is Cause.SIGNATURE_MISSING
    assert refused(source, sent(RICH, validationTokens=[])).cause is Cause.SIGNATURE_MISSING
    other = {**RICH, "tenantId": "another"}
    assert refused(source, sent(RICH, other, validationTokens=[validation()])).cause is Cause.SIGNATURE_MISSING
    assert refused(source, sent({**RICH, "tenantId": None}, validationTokens=[validation()]))


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": "another"},
        {"aud": None},
        {"iss": "https://sts.windows.net/another/"},
        {"iss": f"https://evil.example/{TENANT}/"},
        {"tid": None, "iss": "https://sts.windows.net/None/"},
        {"tid": "another"},
        {"appid": "another"},
        {"appid": None},
        {"exp": NOW - 100},
        {"exp": None},
        {"nbf": NOW + 100},
    ],
)
def test_any_other_token_is_refused_even_next_to_a_good_one(changed: dict[str, Any]) -> None:
    for tokens in ([validation(**changed)], [validation(), validation(**changed)]):
        refused(rich(), sent(RICH, validationTokens=tokens))


@pytest.mark.parametrize("tokens", [5, "x", [5], [None], [""], ["a.b.c"], ["x"] * 51, {"a": 1}])
def test_what_is_no_list_of_tokens_is_refused(tokens: Any) -> None:
    refused(rich(), sent(RICH, validationTokens=tokens))


def test_the_url_is_validated_before_there_is_a_subscription() -> None:
    request = Request("microsoft-graph", "POST", Headers(), b"", query="validationToken=Validation%3A+a%26b%3Ci%3E")
    answer = basic.answer_unverified(request)
    assert answer is not None
    assert (answer.status, answer.body) == (200, b"Validation: a&b<i>")
    assert ("content-type", "text/plain; charset=utf-8") in answer.headers


def test_signals_without_an_id_are_events_of_their_own() -> None:
    """Otherwise all but the first of the signals that a drive has changed would be taken for repeats."""
    first, second = ([event.event_id for event in basic.read(sent(ITEM, ITEM))] for _ in range(2))
    assert len({*first, *second}) == 4
    assert None not in first


def test_notifications_with_an_id_or_an_etag_are_known_again() -> None:
    tagged = {**ITEM, "resourceData": {"@odata.etag": 'W/"1"'}}
    for item in ({**ITEM, "id": "n-1"}, tagged):
        first, second = (basic.read(sent(item))[0].event_id for _ in range(2))
        assert first == second
    newer = {**ITEM, "resourceData": {"@odata.etag": 'W/"2"'}}
    assert basic.read(sent(tagged))[0].event_id != basic.read(sent(newer))[0].event_id


def test_an_item_that_is_none_is_one_bad_item() -> None:
    good, bad = basic.read(sent(ITEM, 5))
    assert (good.unreadable, bad.unreadable) == (None, "item 1 of the body is no object")


def test_the_end_of_a_subscription_is_told_by_its_type() -> None:
    item = {"subscriptionId": "s-1", "lifecycleEvent": "subscriptionRemoved", "clientState": "new"}
    assert [event.event_type for event in basic.read(sent(item))] == ["subscriptionRemoved"]


@pytest.mark.parametrize("tenant", [[], {}, None, 1])
def test_a_tenant_that_is_no_text_has_no_token(tenant: Any) -> None:
    bearing = {**RICH, "tenantId": tenant}
    assert refused(rich(), sent(bearing, validationTokens=[validation()])).cause is Cause.SIGNATURE_MISSING
