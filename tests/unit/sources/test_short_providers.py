"""What is particular to single providers that are a description and little more."""

from __future__ import annotations

import hmac
import json
from base64 import b64encode
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from hookledger.delivery import Event
from hookledger.errors import Cause, NotVerified, SecretError, UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources import (
    Source,
    asana,
    auth0,
    bigcommerce,
    clerk,
    cloudevents,
    dropbox,
    gocardless,
    intercom,
    monday,
    notion,
    okta,
    openai,
    pusher,
    segment,
    sentry,
    twitch,
    woocommerce,
    x,
)
from tests.unit.sources.made import NOW, deliveries

FORM = ("Content-Type", "application/x-www-form-urlencoded")


def request(body: Any, *headers: tuple[str, str], query: str = "", method: str = "POST") -> Request:
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("s", method, Headers(headers), body, query=query)


def read(source: Source, body: Any, *headers: tuple[str, str]) -> Event:
    (event,) = source.read(request(body, *headers))
    return event


def refused(source: Source, sent: Request, now: float = NOW) -> Cause | None:
    with pytest.raises(NotVerified) as caught:
        source.verifier.verify(sent, now)
    return caught.value.cause


# CloudEvents

events = cloudevents(secrets="token")
STRUCTURED = ("Content-Type", "application/cloudevents+json; charset=utf-8")
BATCH = ("Content-Type", "application/cloudevents-batch+json")
CLOUD_EVENT = {
    "specversion": "1.0",
    "id": "1",
    "source": "/shop/eu",
    "type": "order.changed",
    "subject": "order/7",
    "time": "2023-11-14T22:13:20Z",
    "datacontenttype": "application/json",
    "data": {"total": 5},
}
BINARY = [
    ("Content-Type", "application/json"),
    *((f"CE-{name}", str(value)) for name, value in CLOUD_EVENT.items() if not name.startswith("data")),
]


def test_a_cloud_event_is_the_same_in_all_three_modes() -> None:
    sent = [
        request(CLOUD_EVENT, STRUCTURED),
        request([CLOUD_EVENT], BATCH),
        request(CLOUD_EVENT["data"], *BINARY),
    ]
    for each in sent:
        (event,) = events.read(each)
        assert (event.event_id, event.event_type, event.resource) == (
            "%2Fshop%2Feu/1",
            "order.changed",
            "%2Fshop%2Feu/order%2F7",
        )
        assert event.content == events.read(sent[0])[0].content
        (delivery,) = deliveries(events, each)
        assert delivery.data == CLOUD_EVENT


@pytest.mark.parametrize(
    ("kind", "body", "data"),
    [
        ("application/json", b"[1]", {"data": [1]}),
        ("application/vnd.x+json", b"5", {"data": 5}),
        ("text/plain", b"<b>", {"data": "<b>"}),
        ("text/plain", b"\xff", {"data_base64": "/w=="}),
        ("image/png", b"\x89", {"data_base64": "iQ=="}),
        ("application/json", b"", {}),
    ],
)
def test_the_data_of_a_binary_cloud_event_goes_by_its_content_type(kind: str, body: bytes, data: Any) -> None:
    headers = [("Content-Type", kind), ("ce-id", "1"), ("ce-source", "s%20t"), ("ce-type", "a")]
    (delivery,) = deliveries(events, request(body, *headers))
    assert delivery.data == {"id": "1", "source": "s t", "type": "a", "datacontenttype": kind, **data}
    assert delivery.event_id == "s t/1"


def test_a_bad_item_of_a_batch_of_cloud_events_is_alone() -> None:
    found = events.read(request([CLOUD_EVENT, 5, {**CLOUD_EVENT, "id": "2"}], BATCH))
    assert [event.unreadable is None for event in found] == [True, False, True]
    assert [event.event_id for event in found] == ["%2Fshop%2Feu/1", None, "%2Fshop%2Feu/2"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({}, "application/json"),
        (CLOUD_EVENT, "application/cloudevents+xml"),
        ([CLOUD_EVENT], STRUCTURED[1]),
        (CLOUD_EVENT, BATCH[1]),
        (b"{", STRUCTURED[1]),
    ],
)
def test_what_is_no_cloud_event_is_unreadable(body: Any, kind: str) -> None:
    with pytest.raises(UnreadableBody):
        events.read(request(body, ("Content-Type", kind)))


def test_cloud_events_are_accepted_as_not_yet_processed_and_asked_for() -> None:
    assert (events.accepted.status, events.accepted.body) == (202, b"")
    asked = request(b"", ("WebHook-Request-Origin", "e.example"), ("WebHook-Request-Rate", "120"), method="OPTIONS")
    answer = events.answer_probe(asked)
    assert answer is not None
    assert Headers(answer.headers).get("webhook-allowed-origin") == "e.example"
    assert Headers(answer.headers).get("webhook-allowed-rate") == "120"


# Tokens


def test_okta_answers_its_one_time_verification_and_is_answered_with_204() -> None:
    source = okta(secrets="k-test-1")
    answer = source.answer_probe(request(b"", ("x-okta-verification-challenge", "abc"), method="GET"))
    assert answer is not None
    assert json.loads(answer.body) == {"verification": "abc"}
    assert (source.accepted.status, source.accepted.body) == (204, b"")


def test_auth0_in_json_lines_is_kept_as_a_dead_letter() -> None:
    event = read(auth0(secrets="k-test-1"), b'{"log_id":"1"}\n{"log_id":"2"}')
    assert event.unreadable is not None
    assert read(auth0(secrets="k-test-1"), b'{"log_id":"1","data":{"type":"s"}}').event_id == "1"


def test_monday_takes_one_secret_of_several_and_tells_the_time() -> None:
    source = monday(secrets=["new", "old"])
    sent = monday(secrets="old").signed(b"{}", NOW)
    found = source.verifier.verify(sent, NOW)
    assert found is not None
    assert found.secret == 1
    late = monday(secrets="old", tolerance=3600)
    with pytest.raises(NotVerified, match="ended 61 seconds ago"):
        late.verifier.verify(sent, NOW + 361)
    late.verifier.verify(sent, NOW + 360)
    assert refused(source, sent, NOW + 301) is Cause.CLOCK
    bearer = replace(sent, headers=Headers([("Authorization", f"Bearer {sent.headers.get('Authorization')}")]))
    source.verifier.verify(bearer, NOW)


def test_monday_gives_the_challenge_back() -> None:
    answer = monday(secrets="k").answer_unverified(request({"challenge": "3eZbrw1aBm2rZgRNFdxV"}))
    assert answer is not None
    assert json.loads(answer.body) == {"challenge": "3eZbrw1aBm2rZgRNFdxV"}
    assert monday(secrets="k").answer_unverified(request({"challenge": "3eZ", "event": {}})) is None


# Standard Webhooks of many kinds


def test_openai_takes_a_secret_without_its_prefix_as_text() -> None:
    text, decoded = openai(secrets="plain-text-secret"), openai(secrets="whsec_MDEyMzQ1Njc4OWFiY2RlZg==")
    for source in (text, decoded):
        source.verifier.verify(source.signed(b"{}", NOW), NOW)
    both = openai(secrets=["plain-text-secret", "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="])
    for number, source in enumerate((text, decoded)):
        found = both.verifier.verify(source.signed(b"{}", NOW), NOW)
        assert found is not None
        assert found.secret == number
    with pytest.raises(SecretError, match="damaged"):
        openai(secrets="whsec_!!")


def test_bigcommerce_keeps_the_shops_of_one_app_apart() -> None:
    source = bigcommerce(secrets="client-secret")
    product = {"scope": "store/product/updated", "data": {"type": "product", "id": 205}}
    first, second = (read(source, {**product, "producer": f"stores/{shop}"}) for shop in "ab")
    assert first.resource == "stores%2Fa/product/205"
    assert first.resource != second.resource


def test_clerk_orders_a_deletion_behind_what_it_deletes() -> None:
    source = clerk(secrets="whsec_MDEyMzQ1Njc4OWFiY2RlZg==")
    user = {"id": "user_1", "updated_at": 1661861640000}
    changed = read(source, {"type": "user.updated", "data": user, "timestamp": 1661861640100})
    gone = read(source, {"type": "user.deleted", "data": {"id": "user_1"}, "timestamp": 1661861640001})
    assert gone.version > changed.version


# HMAC over the body


def test_segment_refuses_a_batch_of_which_only_the_first_event_is_signed() -> None:
    source = segment(secrets="shared")
    first = json.dumps({"messageId": "1", "type": "track", "event": "Paid"})
    signature = ("X-Signature", hmac.new(b"shared", first.encode(), "sha1").hexdigest())
    source.verifier.verify(request(first.encode(), signature), NOW)
    assert read(source, first.encode()).event_type == "track.Paid"
    for batch in (f"[{first}]", f'[{first},{{"messageId":"2"}}]'):
        assert refused(source, request(batch.encode(), signature)) is Cause.NO_MATCH
    # Whoever signs a whole list is not Segment: it holds no event.
    assert read(source, f"[{first}]".encode()).unreadable is not None


def test_pusher_events_that_are_alike_are_not_taken_for_one() -> None:
    source = pusher(secrets="app-secret")
    typing = {"name": "client_event", "channel": "private-a", "event": "client-typing", "socket_id": "1.2"}
    first = source.read(request({"time_ms": 1327078148132, "events": [typing, typing]}))
    later = source.read(request({"time_ms": 1327078148133, "events": [typing]}))
    ids = [event.event_id for event in (*first, *later)]
    assert len(set(ids)) == 3
    assert None not in ids


def test_dropbox_says_the_same_each_time_and_each_time_it_is_news() -> None:
    source = dropbox(secrets="app-secret")
    body = {"list_folder": {"accounts": ["dbid:A", "dbid:B"]}}
    ids = [event.event_id for _ in range(2) for event in source.read(request(body))]
    assert len(set(ids)) == 4
    assert [delivery.data for delivery in deliveries(source, request(body))] == [
        {"account": "dbid:A"},
        {"account": "dbid:B"},
    ]
    bad = source.read(request({"list_folder": {"accounts": ["dbid:A", 5, "dbid:B"]}}))
    assert [event.unreadable is None for event in bad] == [True, False, True]
    assert "no list of accounts" in str(read(source, {"delta": {}}).unreadable)
    challenge = source.answer_probe(request(b"", query="challenge=abc", method="GET"))
    assert challenge is not None
    assert challenge.body == b"abc"


def test_woocommerce_deliveries_of_one_second_are_told_apart() -> None:
    source = woocommerce(secrets="k-test-1")

    def sent(body: Any, topic: str = "order.updated") -> str | None:
        headers = [("X-WC-Webhook-ID", "3"), ("X-WC-Webhook-Delivery-ID", "same"), ("X-WC-Webhook-Topic", topic)]
        return read(source, body, *headers).event_id

    ids = [sent({"id": 1}), sent({"id": 2}), sent({"id": 1}, "order.deleted"), sent({"action": "a", "arg": 9})]
    ids += [sent({"id": 1, "date_modified_gmt": "2017-03-22T19:28:08"})]
    assert len(set(ids)) == 5
    assert None not in ids


def test_woocommerce_is_sent_with_the_headers_that_its_id_is_made_of() -> None:
    sent = woocommerce(secrets="k-test-1").signed(b'{"id":5}', NOW, event_type="order.created")
    event = woocommerce(secrets="k-test-1").read(sent)[0]
    assert event.event_id is not None
    assert event.event_id.startswith("3/order.created/5")
    assert [name for name, _ in sent.headers].count("X-WC-Webhook-Topic") == 1


def test_woocommerce_pings_with_a_form_that_is_not_signed() -> None:
    source = woocommerce(secrets="k-test-1")
    answer = source.answer_unverified(request(b"webhook_id=3", FORM))
    assert answer is not None
    assert (answer.status, answer.body) == (200, b"")
    for other in (request(b"webhook_id=3&id=4", FORM), request(b"webhook_id=3"), request(b"webhook_id=", FORM)):
        assert source.answer_unverified(other) is None


def test_intercom_and_sentry_name_what_their_events_are_about() -> None:
    ping = read(intercom(secrets="k"), {"topic": "ping", "data": {"item": {"type": "ping", "message": "hi"}}})
    assert (ping.event_type, ping.resource) == ("ping", None)
    alert = {"action": "triggered", "data": {"event": {"event_id": "e", "issue_id": "1117540176"}}}
    headers = [("Sentry-Hook-Resource", "event_alert"), ("Request-ID", "r-1")]
    event = read(sentry(secrets="k"), alert, *headers)
    assert (event.event_id, event.event_type, event.resource) == ("r-1", "event_alert.triggered", "1117540176")


def test_gocardless_names_the_resource_by_the_link_of_its_own_kind() -> None:
    refund = {
        "id": "EV1",
        "resource_type": "refunds",
        "action": "created",
        "links": {"payment": "PM1", "refund": "RF1"},
    }
    other = {"id": "EV2", "resource_type": "refunds", "action": "created", "links": {"payment": "PM1"}}
    found = gocardless(secrets="k").read(request({"events": [refund, other, 5]}))
    assert [event.resource for event in found] == ["refunds/RF1", None, None]


# Twitch


def test_twitch_reads_from_the_body_what_its_headers_say_without_being_signed() -> None:
    source = twitch(secrets="s3cre77890ab")
    subscription = {"id": "s-1", "type": "channel.follow", "status": "authorization_revoked"}
    header = ("Twitch-Eventsub-Message-Type", "notification")
    revoked = read(source, {"subscription": subscription}, header)
    assert (revoked.event_type, revoked.resource) == ("revocation", "s-1")
    assert source.refused_status == 403


def test_twitch_answers_the_challenge_only_to_what_is_signed() -> None:
    source = twitch(secrets="s3cre77890ab")
    signed = source.signed(b'{"challenge":"pogchamp"}', NOW, identifier="m-1")
    kind = ("Twitch-Eventsub-Message-Type", "webhook_callback_verification")
    sent = replace(signed, headers=Headers([*signed.headers, kind]))
    source.verifier.verify(sent, NOW)
    answer = source.handshake(sent)
    assert answer is not None
    assert answer.body == b"pogchamp"
    assert source.answer_unverified(sent) is None


@pytest.mark.parametrize("secret", ["short", "a" * 101, "s3cre77890\u00e9"])
def test_a_twitch_secret_of_another_length_is_told(secret: str) -> None:
    with pytest.raises(SecretError, match="10 to 100 characters"):
        twitch(secrets=secret)


# X


def test_x_splits_a_body_into_bodies_of_one_event() -> None:
    source = x(secrets="consumer-secret")
    body = {
        "for_user_id": "9",
        "users": {"1": {"name": "a"}},
        "follow_events": [{"type": "follow", "created_timestamp": "1517588749178"}, 5],
        "direct_message_events": [{"type": "message_create", "id": "954491830116155396"}],
    }
    found = source.read(request(body))
    assert [event.event_type for event in (found[0], found[2])] == ["follow", "direct_message"]
    assert [event.unreadable is None for event in found] == [True, False, True]
    assert [event.event_id for event in found] == [None, None, "9/direct_message/954491830116155396"]
    message = deliveries(source, request(body))[2]
    assert message.data == {**{key: body[key] for key in ("for_user_id", "users")}, **dict([list(body.items())[3]])}
    other = source.read(request({**body, "for_user_id": "8"}))
    assert found[0].content != other[0].content, "one event, but news for each account that is subscribed to"
    revoked = {"user_event": {"revoke": {"date_time": "2018-05-24T09:48:12+00:00"}}}
    assert read(source, revoked).event_type == "user_event.revoke"
    for unusable in ({"for_user_id": "9"}, [], 5):
        assert read(source, unusable).unreadable is not None


def test_x_is_answered_with_the_key_of_the_app() -> None:
    answer = x(secrets="consumer-secret").answer_probe(request(b"", query=urlencode({"crc_token": "t"}), method="GET"))
    assert answer is not None
    wanted = b64encode(hmac.digest(b"consumer-secret", b"t", "sha256")).decode()
    assert json.loads(answer.body) == {"response_token": f"sha256={wanted}"}


# Secrets that come later


def test_the_secret_of_asana_comes_while_the_webhook_is_made() -> None:
    kept: dict[str, str] = {}
    expected = {"project=1"}

    def take(asked: Request, secret: str) -> bool:
        if asked.query not in expected:
            return False
        expected.discard(asked.query)
        kept[asked.query] = secret
        return True

    source = asana(secrets=lambda asked: kept.get(asked.query), on_secret=take)
    secret = "b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81"
    delivery = replace(asana(secrets=secret).signed(b'{"events":[]}', NOW), query="project=1")
    assert refused(source, delivery) is Cause.UNKNOWN_ACCOUNT
    offered = request(b"{}", ("X-Hook-Secret", secret), query="project=1")
    answer = source.answer_unverified(offered)
    assert answer is not None
    assert (answer.status, Headers(answer.headers).get("X-Hook-Secret")) == (200, secret)
    source.verifier.verify(delivery, NOW)
    assert source.read(delivery) == []
    again = source.answer_unverified(replace(offered, headers=Headers([("X-Hook-Secret", "of-somebody-else")])))
    assert again is not None
    assert again.status == 403
    assert kept == {"project=1": secret}


def test_asana_changes_of_two_fields_of_one_task_are_two_events() -> None:
    task = {"action": "changed", "resource": {"gid": "1"}, "created_at": "2018-08-21T18:20:37.972Z"}
    fields = [{**task, "change": {"field": field}} for field in ("due_on", "assignee")]
    first, second = asana(secrets="k").read(request({"events": fields}))
    assert first.event_id != second.event_id


def test_notion_gives_its_token_to_the_function_that_waits_for_it() -> None:
    token = "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"
    kept: list[str] = []

    def take(asked: Request, secret: str) -> bool:
        kept.append(secret)
        return len(kept) == 1

    source = notion(secrets=lambda asked: kept[0] if kept else None, on_secret=take)
    statuses = []
    for offered in (token, "secret_of_somebody_else"):
        answer = source.answer_unverified(request({"verification_token": offered}))
        assert answer is not None
        statuses.append(answer.status)
    assert statuses == [200, 403]
    source.verifier.verify(notion(secrets=token).signed(b"{}", NOW), NOW)
