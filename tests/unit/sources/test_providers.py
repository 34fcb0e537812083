"""What is particular to single providers: their habits, and what people tripped over."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest

from hookledger.delivery import Event
from hookledger.errors import Cause, NotVerified, SecretError
from hookledger.http import Headers, Request
from hookledger.sources import (
    Source,
    discord,
    gitlab,
    hubspot,
    mailgun,
    sendgrid,
    shopify,
    slack,
    square,
    telegram,
    zoom,
)
from hookledger.version import read_version
from tests.unit.sources.made import NOW, deliveries, make

FORM = ("Content-Type", "application/x-www-form-urlencoded")


def request(body: Any, *headers: tuple[str, str], query: str = "") -> Request:
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("s", "POST", Headers(headers), body, query=query)


def read(source: Source, body: Any, *headers: tuple[str, str]) -> Event:
    (event,) = source.read(request(body, *headers))
    return event


def refused(source: Source, sent: Request, now: float = NOW) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        source.verifier.verify(sent, now)
    return caught.value


# Shopify

shop = shopify(secrets="hush")


def test_shopify_events_of_the_newer_kind_are_read_by_their_own_headers() -> None:
    signature = b64encode(hmac.digest(b"hush", b'{"id":1}', "sha256")).decode()
    newer = [
        ("shopify-hmac-sha256", signature),
        ("shopify-webhook-id", "w-1"),
        ("shopify-topic", "product"),
        ("shopify-action", "update"),
    ]
    shop.verifier.verify(request(b'{"id":1}', *newer), NOW)
    event = read(shop, b'{"id":1}', *newer)
    assert (event.event_id, event.event_type, event.resource) == ("w-1", "product/update", "1")


def test_shopify_keys_a_delivery_by_its_webhook_id_and_not_by_the_shared_event_id() -> None:
    headers = [("X-Shopify-Event-Id", "e-1"), ("X-Shopify-Topic", "orders/create")]
    first = read(shop, {"id": 1}, *headers, ("X-Shopify-Webhook-Id", "w-1"))
    second = read(shop, {"id": 1}, *headers, ("X-Shopify-Webhook-Id", "w-2"))
    assert (first.event_id, second.event_id) == ("w-1", "w-2")
    assert read(shop, {"id": 1}, *headers).event_id is None


def test_shopify_deletions_are_newer_than_what_they_delete() -> None:
    updated = read(shop, {"id": 1, "updated_at": "2023-03-29T14:00:27-04:00"})
    gone = request(
        {"id": 1}, ("X-Shopify-Topic", "products/delete"), ("X-Shopify-Triggered-At", "2023-03-29T18:00:28.8Z")
    )
    (delivery,) = deliveries(shop, gone)
    assert delivery.deleted
    assert delivery.version > read_version(updated.version)  # type: ignore[operator]


# Slack

chat = slack(secrets="8f742231b10e8888abcd99yyyzzz85a5")


def test_slack_commands_and_interactivity_are_forms() -> None:
    command = read(chat, b"command=%2Fweather&trigger_id=13345224609.7&text=", FORM)
    assert (command.event_id, command.event_type) == ("13345224609.7", "/weather")
    payload = "payload=" + '{"type":"block_actions","trigger_id":"t-1"}'.replace('"', "%22")
    action = read(chat, payload.encode(), FORM)
    assert (action.event_id, action.event_type) == ("t-1", "block_actions")
    (delivery,) = deliveries(chat, request(payload.encode(), FORM))
    assert delivery.data == {"type": "block_actions", "trigger_id": "t-1"}


def test_slack_versions_of_both_kinds_compare() -> None:
    exact = read(chat, {"event_id": "a", "event": {"event_ts": "1358878755.000002"}})
    coarse = read(chat, {"event_id": "b", "event_time": 1358878756})
    assert read_version(exact.version) < read_version(coarse.version)  # type: ignore[operator]


def test_slack_answers_the_url_verification_only_to_what_is_signed() -> None:
    body = b'{"type":"url_verification","challenge":"abc"}'
    sent = chat.signed(body, NOW)
    chat.verifier.verify(sent, NOW)
    answer = chat.handshake(sent)
    assert answer is not None
    assert answer.body == b"abc"
    assert chat.answer_unverified(sent) is None


# GitLab

TOKEN, SIGNING = "hook-token", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"


def test_gitlab_takes_either_kind_of_secret() -> None:
    by_token, by_signature = gitlab(secrets=TOKEN), gitlab(secrets=SIGNING)
    by_token.verifier.verify(request(b"{}", ("X-Gitlab-Token", TOKEN)), NOW)
    signed = by_signature.signed(b"{}", NOW)
    by_signature.verifier.verify(signed, NOW)
    assert refused(by_token, signed).cause is Cause.SIGNATURE_MISSING
    assert refused(by_signature, request(b"{}", ("X-Gitlab-Token", TOKEN))).cause is Cause.SIGNATURE_MISSING
    assert by_token.sign is not None
    assert by_token.sign(b"{}", NOW).get("X-Gitlab-Token") == TOKEN


def test_gitlab_never_falls_back_to_the_token_on_a_bad_signature() -> None:
    both = gitlab(secrets=[TOKEN, SIGNING])
    signed = gitlab(secrets=SIGNING).signed(b"{}", NOW)
    found = both.verifier.verify(signed, NOW)
    assert found is not None
    assert found.secret == 1
    token = ("X-Gitlab-Token", TOKEN)
    both.verifier.verify(request(b"{}", token), NOW)
    spoilt = replace(signed, body=b"{ }", headers=Headers([*signed.headers, token]))
    assert refused(both, spoilt).cause is Cause.NO_MATCH
    late = replace(signed, headers=Headers([*signed.headers, token]))
    assert refused(both, late, NOW + 301).cause is Cause.CLOCK


def test_gitlab_s_two_ways_of_writing_a_time_compare() -> None:
    source = gitlab(secrets=TOKEN)
    first = read(source, {"object_attributes": {"updated_at": "2017-09-15 16:52:00 UTC"}})
    second = read(source, {"object_attributes": {"updated_at": "2017-09-15T16:52:01Z"}})
    assert read_version(first.version) < read_version(second.version)  # type: ignore[operator]


def test_gitlab_reads_what_kind_of_event_it_is_from_the_body() -> None:
    source = gitlab(secrets=TOKEN)
    push = {"object_kind": "push", "ref": "refs/heads/main", "project_id": 15}
    event = read(source, push, ("X-Gitlab-Event", "Push Hook"), ("X-Gitlab-Webhook-UUID", "new-each-time"))
    assert (event.event_id, event.event_type, event.resource) == (None, "push", "push/15/refs%2Fheads%2Fmain")
    assert read(source, {"event_name": "project_create"}).event_type == "project_create"
    assert read(source, {"own": "template"}, ("X-Gitlab-Event", "Push Hook")).event_type == "Push Hook"


# SendGrid and HubSpot


def test_a_bad_item_of_a_batch_is_alone_with_sendgrid() -> None:
    source = make(sendgrid).source
    events = source.read(request([{"sg_event_id": "a", "event": "open", "timestamp": 1}, 5, {"event": "click"}]))
    assert [event.event_id for event in events] == ["a", None, None]
    assert [event.unreadable is None for event in events] == [True, False, True]


def test_hubspots_event_id_alone_is_not_unique() -> None:
    source = hubspot(secrets="s", url="https://example.com/hook")
    item = {"eventId": 1, "subscriptionId": 2, "portalId": 3, "objectId": 4, "occurredAt": 5, "attemptNumber": 0}
    changes: list[dict[str, object]] = [{}, {"portalId": 9}, {"objectId": 9}, {"occurredAt": 9}, {"subscriptionId": 9}]
    changes.append({"propertyName": "email"})
    ids = [event.event_id for event in source.read(request([{**item, **change} for change in changes]))]
    assert len(set(ids)) == len(changes)
    (again,) = source.read(request([{**item, "attemptNumber": 3}]))
    assert again.event_id == ids[0]


def test_hubspot_signs_the_method_and_the_decoded_url() -> None:
    source = hubspot(secrets="s", url="https://example.com/hook?to=a%40b")
    body, stamp = b"[]", str(NOW * 1000)
    message = b"POSThttps://example.com/hook?to=a@b[]" + stamp.encode()
    headers = [
        ("X-HubSpot-Request-Timestamp", stamp),
        ("X-HubSpot-Signature-v3", b64encode(hmac.digest(b"s", message, "sha256")).decode()),
        ("X-HubSpot-Signature-Version", "v1"),
        ("X-HubSpot-Signature", hashlib.sha256(b"s" + body).hexdigest()),
    ]
    source.verifier.verify(request(body, *headers), NOW)
    assert refused(source, request(body, *headers[2:])).cause is Cause.SIGNATURE_MISSING


# Mailgun


def test_mailgun_s_signature_is_put_into_the_body() -> None:
    source = mailgun(secrets="key")
    sent = source.signed(b'{"event-data":{"id":"a","event":"opened"}}', NOW)
    assert len(sent.headers) == 0
    source.verifier.verify(sent, NOW)
    source.verifier.verify(sent, NOW + 11 * 3600)
    assert refused(source, sent, NOW + 13 * 3600).cause is Cause.CLOCK
    assert read(source, sent.body).event_id == "a"


@pytest.mark.parametrize(
    "signature",
    [None, [], "x", {}, {"timestamp": "1", "token": "t"}, {"timestamp": 1, "token": "t", "signature": ["x"]}],
)
def test_mailgun_without_a_whole_signature_is_refused(signature: object) -> None:
    error = refused(mailgun(secrets="key"), request({"signature": signature, "event-data": {}}))
    assert error.cause is Cause.SIGNATURE_MISSING


# Square


def test_square_signs_the_url_that_it_was_given_and_not_the_one_that_we_see() -> None:
    source = square(secrets="key", url="https://example.com/webhooks/square")
    sent = replace(source.signed(b"{}", NOW), url="http://10.0.0.7:8000/square")
    source.verifier.verify(sent, NOW)
    forwarded = [("Host", "evil.example"), ("X-Forwarded-Host", "evil.example"), ("X-Forwarded-Proto", "http")]
    source.verifier.verify(replace(sent, headers=Headers([*forwarded, *sent.headers])), NOW)


# Discord


def test_discord_answers_its_events_with_204_and_both_pings() -> None:
    source = make(discord).source
    assert (source.accepted.status, source.accepted.body) == (204, b"")
    assert source.refused_status == 401
    ping = source.handshake(request({"version": 1, "application_id": "1", "type": 0}))
    assert ping is not None
    assert ping.status == 204
    assert source.handshake(make(discord).request()) is None


def test_discord_interactions_have_an_id() -> None:
    event = read(make(discord).source, {"id": "787053080478613555", "type": 2, "application_id": "1"})
    assert (event.event_id, event.event_type) == ("787053080478613555", "2")


# Telegram


@pytest.mark.parametrize("secret", ["a b", "a/b", "\u00e9", "a" * 257])
def test_a_telegram_secret_of_another_spelling_is_told(secret: str) -> None:
    with pytest.raises(SecretError, match="letters, digits"):
        telegram(secrets=secret)


def test_telegram_updates_are_told_apart_by_their_key() -> None:
    source = telegram(secrets="k-test_1")
    edited = read(source, {"update_id": 8, "edited_message": {"message_id": 5, "chat": {"id": -100}}})
    assert (edited.event_id, edited.event_type, edited.resource) == ("8", "edited_message", "-100/5")
    poll = read(source, {"update_id": 9, "poll": {"id": "1"}})
    assert (poll.event_type, poll.resource) == ("poll", None)
    odd = read(source, {"update_id": 10})
    assert (odd.event_type, odd.unreadable) == ("", None)


# Zoom


def test_zoom_events_of_one_moment_are_told_apart_by_their_participant() -> None:
    source = zoom(secrets="k")
    ids = set()
    for who in ("16778240", "16778241"):
        meeting = {"uuid": "4444AAAiAAAAAiAiAiiAii==", "id": "1", "participant": {"user_id": who}}
        body = {"event": "meeting.participant_joined", "event_ts": 5, "payload": {"account_id": "A", "object": meeting}}
        ids.add(read(source, body).event_id)
    assert len(ids) == 2
