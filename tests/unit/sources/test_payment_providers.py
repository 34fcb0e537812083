"""What is particular to providers of payments."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookledger.delivery import Event
from hookledger.errors import Cause, NotVerified, SecretError
from hookledger.http import Headers, Request
from hookledger.sources import (
    Source,
    adyen_platform,
    coinbase_commerce,
    lemon_squeezy,
    mollie,
    mollie_classic,
    paddle,
    razorpay,
)
from hookledger.version import read_version
from tests.unit.sources.made import NOW, deliveries, make


def read(source: Source, body: Any, *headers: tuple[str, str]) -> Event:
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    (event,) = source.read(Request("s", "POST", Headers(headers), body))
    return event


# Paddle


def test_paddles_five_seconds_can_be_widened() -> None:
    narrow, wide = paddle(secrets="pdl_ntfset_1"), paddle(secrets="pdl_ntfset_1", tolerance=60)
    sent = narrow.signed(b"{}", NOW)
    narrow.verifier.verify(sent, NOW + 5)
    wide.verifier.verify(sent, NOW + 60)
    with pytest.raises(NotVerified) as caught:
        narrow.verifier.verify(sent, NOW + 6)
    assert caught.value.cause is Cause.CLOCK


def test_a_paddle_api_key_is_no_webhook_secret() -> None:
    with pytest.raises(SecretError, match="it is an API key"):
        paddle(secrets="pdl_live_apikey_01gtgztp8f4kek3yd4g1wrksa3")


def test_paddle_created_and_updated_are_of_one_resource_in_order() -> None:
    source = make(paddle).source
    events = [
        read(source, {"event_id": i, "event_type": t, "occurred_at": at, "data": {"id": "txn_1"}})
        for i, t, at in (
            ("evt_1", "transaction.created", "2024-03-15T10:32:38.286848Z"),
            ("evt_2", "transaction.updated", "2024-03-15T10:32:38.286849Z"),
        )
    ]
    assert events[0].resource == events[1].resource
    assert read_version(events[0].version) < read_version(events[1].version)  # type: ignore[operator]


# Lemon Squeezy

lemon = lemon_squeezy(secrets="hush-hush")


def subscription(**attributes: Any) -> dict[str, Any]:
    attributes = {"status": "active", "updated_at": "2023-01-17T12:43:51.000000Z", **attributes}
    return {
        "meta": {"event_name": "subscription_updated"},
        "data": {"type": "subscriptions", "id": "1", "attributes": attributes},
    }


def test_two_changes_within_a_second_are_two_events_of_lemon_squeezy() -> None:
    first, second = read(lemon, subscription()), read(lemon, subscription(status="paused"))
    assert first.event_id != second.event_id
    assert (first.resource, first.version) == (second.resource, second.version)


def test_links_that_are_signed_anew_make_no_other_event_of_lemon_squeezy() -> None:
    first = read(lemon, subscription(urls={"customer_portal": "https://x.example/?expires=1&signature=a"}))
    again = read(lemon, subscription(urls={"customer_portal": "https://x.example/?expires=2&signature=b"}))
    assert first.event_id == again.event_id
    assert first.event_id is not None


# Razorpay


@pytest.mark.parametrize(
    ("event", "resource"),
    [
        ("payment.captured", "pay_1"),
        ("order.paid", "order_1"),
        ("payment.dispute.created", "disp_1"),
        ("fund_account.validation.completed", "fav_1"),
        ("unheard.of", None),
    ],
)
def test_razorpay_events_are_about_what_they_are_named_after(event: str, resource: str | None) -> None:
    ids = {"payment": "pay_1", "order": "order_1", "dispute": "disp_1", "fund_account.validation": "fav_1"}
    body = {"event": event, "payload": {name: {"entity": {"id": number}} for name, number in ids.items()}}
    assert read(make(razorpay).source, body).resource == resource


def test_razorpays_api_key_is_no_webhook_secret() -> None:
    with pytest.raises(SecretError, match="it is an API key"):
        razorpay(secrets="rzp_live_ILgsfZCZoFIKMb")


# Mollie


def test_mollie_without_a_signature_is_the_classic_webhook_and_is_refused() -> None:
    with pytest.raises(NotVerified) as caught:
        mollie(secrets="k").verifier.verify(Request("mollie", "POST", Headers(), b"id=tr_1"), NOW)
    assert caught.value.cause is Cause.SIGNATURE_MISSING


def test_each_ping_of_mollies_classic_webhook_is_an_event_about_its_payment() -> None:
    source = mollie_classic(secrets="of-my-own")
    ping = Request("mollie-classic", "POST", Headers(), b"id=tr_5B8cwPMGnU6qLbRvo7qEZo", query="token=of-my-own")
    source.verifier.verify(ping, NOW)
    first, second = deliveries(source, ping)[0], deliveries(source, ping)[0]
    assert first.event_id != second.event_id
    assert first.resource == second.resource == "tr_5B8cwPMGnU6qLbRvo7qEZo"
    assert not source.has_version


# Coinbase Commerce


def test_attempts_of_coinbase_commerce_have_other_bytes_and_the_same_id() -> None:
    source = make(coinbase_commerce).source
    event = {"id": "e-1", "type": "charge:pending", "created_at": "2017-01-31T20:49:02Z", "data": {"code": "66BEOV2A"}}
    first = read(source, {"id": 1, "attempt_number": 1, "event": event})
    again = read(source, {"id": 2, "attempt_number": 2, "event": event})
    assert (first.event_id, again.event_id) == ("e-1", "e-1")
    confirmed = {**event, "id": "e-2", "type": "charge:confirmed", "data": {"code": "66BEOV2A", "id": "f765"}}
    assert read(source, {"event": confirmed}).resource == first.resource


# Adyen for Platforms

KEY = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
adyen = adyen_platform(secrets=KEY)


def test_adyen_is_answered_accepted() -> None:
    assert (adyen.accepted.status, adyen.accepted.body) == (200, b"[accepted]")


def test_an_adyen_key_must_be_hex() -> None:
    with pytest.raises(SecretError, match="hex digits"):
        adyen_platform(secrets=KEY[:-1] + "G")


def test_adyens_transfers_are_ordered_by_their_number_and_others_by_their_time() -> None:
    kind = "balancePlatform.transfer.updated"
    second, tenth = (
        read(adyen, {"type": kind, "timestamp": "t", "data": {"id": "T", "sequenceNumber": number}})
        for number in (2, 10)
    )
    assert second.resource == tenth.resource
    assert read_version(second.version) < read_version(tenth.version)  # type: ignore[operator]
    assert second.event_id != tenth.event_id
    holder = read(
        adyen,
        {
            "type": "balancePlatform.accountHolder.updated",
            "timestamp": "2023-11-14T23:13:19+01:00",
            "data": {"balancePlatform": "B", "accountHolder": {"id": "AH1"}},
        },
    )
    assert (holder.event_id, holder.resource) == (None, "AH1")
    assert read_version(holder.version) is not None
