"""Handshakes: what providers ask of a URL, and that nothing dangerous can be had by asking (5.4 of their habits)."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from hookledger.errors import NotVerified, SetupError
from hookledger.http import Headers, Request, Response
from hookledger.sources import Source, braintree, handshakes, x
from hookledger.sources.catalogue import provider
from hookledger.sources.reflection import LONGEST_REFLECTED, reflected
from hookledger.sources.settings import Handshake, Settings
from tests.unit.sources.made import NOW

KEY = b"k-test-1"


def ask(
    handshake: Handshake,
    method: str = "POST",
    body: Any = b"",
    query: str = "",
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> Response | None:
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = Request("s", method, Headers((headers or {}).items()), body, query=query)
    settings = Settings("s", None, None, options, lambda _: KEY)
    return reflected("s", lambda each: handshake(each, settings), request)


def header(response: Response | None, name: str) -> str | None:
    assert response is not None
    return Headers(response.headers).get(name)


def text(response: Response | None) -> tuple[int, bytes]:
    assert response is not None
    assert header(response, "content-type") == "text/plain; charset=utf-8"
    assert header(response, "x-content-type-options") == "nosniff"
    return response.status, response.body


def document(response: Response | None) -> Any:
    assert response is not None
    assert response.status == 200
    assert header(response, "content-type") == "application/json"
    assert header(response, "x-content-type-options") == "nosniff"
    return json.loads(response.body)


# Signed ones


def test_slack() -> None:
    body = {"token": "t", "challenge": "3eZbrw1a<b>", "type": "url_verification"}
    assert text(ask(handshakes.slack_url_verification, body=body)) == (200, b"3eZbrw1a<b>")
    for other in ({**body, "type": "event_callback"}, {**body, "challenge": 5}, [], b"url_verification", b""):
        assert ask(handshakes.slack_url_verification, body=other) is None


def test_zoom() -> None:
    body = {"payload": {"plainToken": "qgg8vlvZRS6UYooatFL8Aw"}, "event_ts": 1, "event": "endpoint.url_validation"}
    assert document(ask(handshakes.zoom_url_validation, body=body)) == {
        "plainToken": "qgg8vlvZRS6UYooatFL8Aw",
        "encryptedToken": hmac.new(KEY, b"qgg8vlvZRS6UYooatFL8Aw", hashlib.sha256).hexdigest(),
    }
    for other in ({**body, "event": "meeting.started"}, {**body, "payload": []}, {**body, "payload": {}}, b"{"):
        assert ask(handshakes.zoom_url_validation, body=other) is None


def test_twitch() -> None:
    told = {"Twitch-Eventsub-Message-Type": "webhook_callback_verification"}
    body = {"challenge": "pogchamp-kappa-360noscope-vohiyo"}
    assert text(ask(handshakes.twitch_challenge, body=body, headers=told))[1] == b"pogchamp-kappa-360noscope-vohiyo"
    assert ask(handshakes.twitch_challenge, body=body) is None
    assert ask(handshakes.twitch_challenge, body={}, headers=told) is None


def test_front() -> None:
    told = {"X-Front-Challenge": "random <b>"}
    assert text(ask(handshakes.front_challenge, body={"type": "sync"}, headers=told)) == (200, b"random <b>")
    assert ask(handshakes.front_challenge, body={"type": "sync"}) is None
    assert ask(handshakes.front_challenge, headers={"X-Front-Challenge": "x" * 4097}) is None


def test_discord_has_two_pings_and_an_event_is_neither() -> None:
    events = ask(handshakes.discord_ping, body={"version": 1, "application_id": "1", "type": 0})
    assert events is not None
    assert (events.status, events.body) == (204, b"")
    assert header(events, "content-type")
    assert document(ask(handshakes.discord_ping, body={"id": "1", "type": 1})) == {"type": 1}
    for other in ({"type": 1, "event": {}}, {"type": 2}, {"type": True}, {"type": False}, {}, [0], b"{"):
        assert ask(handshakes.discord_ping, body=other) is None


# Those by which the URL is looked at


def test_meta() -> None:
    query = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=meaty%20hamster"
    known = {"verify_token": "meaty hamster"}
    assert text(ask(handshakes.meta_hub_challenge, "GET", query=query, **known)) == (200, b"1158201444")
    for wrong in (query.replace("meaty", "meety"), "hub.mode=subscribe&hub.challenge=1", query + "&hub.mode=x"):
        answer = ask(handshakes.meta_hub_challenge, "GET", query=wrong, **known)
        assert answer is not None
        assert answer.status == (200 if wrong.endswith("x") else 403)
    assert ask(handshakes.meta_hub_challenge, "GET", query="a=1", **known) is None
    assert ask(handshakes.meta_hub_challenge, "POST", query=query, **known) is None
    unset = ask(handshakes.meta_hub_challenge, "GET", query="hub.mode=subscribe&hub.verify_token=&hub.challenge=1")
    assert unset is not None
    assert unset.status == 403


def test_dropbox_graph_and_okta_echo() -> None:
    script = "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    assert text(ask(handshakes.dropbox_challenge, "GET", query=f"challenge={script}")) == (
        200,
        b"<script>alert(1)</script>",
    )
    assert ask(handshakes.dropbox_challenge, "POST", query="challenge=a") is None
    token = "validationToken=Validation%3A+Testing+client%3A+%2B"
    assert text(ask(handshakes.graph_validation_token, query=token)) == (200, b"Validation: Testing client: +")
    assert ask(handshakes.graph_validation_token, query="a=1") is None
    asked = {"X-Okta-Verification-Challenge": "<b>"}
    assert document(ask(handshakes.okta_verification, "GET", headers=asked)) == {"verification": "<b>"}
    assert ask(handshakes.okta_verification, "GET") is None


def test_x() -> None:
    """https://docs.x.com/x-api/webhooks/introduction"""
    wanted = "sha256=" + b64encode(hmac.digest(KEY, b"challenge_string", "sha256")).decode()
    assert document(ask(handshakes.x_crc, "GET", query="crc_token=challenge_string&nonce=1")) == {
        "response_token": wanted
    }
    assert ask(handshakes.x_crc, "GET") is None


def test_braintree() -> None:
    """V38: braintree/braintree_ruby spec/unit/braintree/webhook_notification_spec.rb"""
    settings = Settings("s", None, None, {"public_key": "integration_public_key"}, lambda _: b"integration_private_key")
    request = Request("s", "GET", Headers(), b"", query="bt_challenge=20f9f8ed05f77439fe955c977e4c8a53")
    answer = handshakes.braintree_challenge(request, settings)
    assert text(answer)[1] == b"integration_public_key|d9b899556c966b3f06945ec21311865d35df3ce4"
    for challenge in ("goodbye cruel world", "", "G" * 20):
        refused = ask(handshakes.braintree_challenge, "GET", query=f"bt_challenge={challenge}", public_key="p")
        assert refused is not None
        assert refused.status == 400
    assert ask(handshakes.braintree_challenge, "GET", query="") is None


def test_cloudevents() -> None:
    asked = {"WebHook-Request-Origin": "eventemitter.example.com", "WebHook-Request-Rate": "120"}
    answer = ask(handshakes.cloudevents_options, "OPTIONS", headers=asked)
    assert header(answer, "webhook-allowed-origin") == "eventemitter.example.com"
    assert header(answer, "webhook-allowed-rate") == "120"
    assert ask(handshakes.cloudevents_options, "OPTIONS") is None
    split = {"WebHook-Request-Origin": "a\r\nSet-Cookie: b"}
    assert ask(handshakes.cloudevents_options, "OPTIONS", headers=split) is None


# Those that come before there is a secret


def test_asana_gives_the_secret_to_the_source_and_back_only_if_it_is_taken() -> None:
    given = {"X-Hook-Secret": "b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81"}
    taken: list[str] = []

    def take(request: Request, secret: str) -> bool:
        taken.append(secret)
        return True

    answer = ask(handshakes.asana_hook_secret, headers=given, on_secret=take)
    assert header(answer, "x-hook-secret") == taken[0] == given["X-Hook-Secret"]
    for refusing in (lambda request, secret: False, lambda request, secret: None, lambda request, secret: "yes"):
        refused = ask(handshakes.asana_hook_secret, headers=given, on_secret=refusing)
        assert refused is not None
        assert refused.status == 403
        assert header(refused, "x-hook-secret") is None
    assert ask(handshakes.asana_hook_secret, headers=given) is None
    assert ask(handshakes.asana_hook_secret, headers={"X-Hook-Secret": "a b"}, on_secret=take) is None


def test_a_function_that_fails_answers_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fails(request: Request, secret: str) -> bool:
        raise RuntimeError

    assert ask(handshakes.asana_hook_secret, headers={"X-Hook-Secret": "s" * 64}, on_secret=fails) is None
    assert "a handshake of s failed" in caplog.text
    assert "s" * 64 not in caplog.text


def test_monday_and_notion() -> None:
    assert document(ask(handshakes.monday_challenge, body={"challenge": "3eZ"})) == {"challenge": "3eZ"}
    for other in ({"challenge": "3eZ", "event": {}}, {"challenge": 5}, {}, b"{"):
        assert ask(handshakes.monday_challenge, body=other) is None
    token = {"verification_token": "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"}
    for took, status in ((True, 200), (False, 403)):
        answer = ask(
            handshakes.notion_verification_token, body=token, on_secret=lambda request, secret, took=took: took
        )
        assert answer is not None
        assert (answer.status, answer.body) == (status, b"")
    assert ask(handshakes.notion_verification_token, body=token) is None


def test_a_large_body_is_not_parsed_to_see_whether_it_is_a_handshake() -> None:
    body = json.dumps({"challenge": "x" * 100_000}).encode()
    assert ask(handshakes.monday_challenge, body=body) is None


# Reflection fails closed


@pytest.mark.parametrize(
    "answer",
    [
        Response(200, b"x" * (LONGEST_REFLECTED + 1)),
        Response(200, b"<b>", (("content-type", "text/html"),)),
        Response(200, b"<b>", (("Content-Type", "image/svg+xml; charset=utf-8"),)),
        Response(302, b"", (("location", "https://evil.example"),)),
        Response(410),
        Response(200, b"", (("x-hook-secret", "a\r\nset-cookie: b"),)),
    ],
)
def test_an_answer_that_could_do_harm_becomes_400(answer: Response) -> None:
    made = reflected("s", lambda request: answer, Request("s", "GET", Headers(), b""))
    assert made is not None
    assert (made.status, made.body) == (400, b"")


def test_no_answer_is_no_answer() -> None:
    assert reflected("s", lambda request: None, Request("s", "GET", Headers(), b"")) is None


# Through a source


def test_the_handshake_of_a_source_uses_the_key_that_signed() -> None:
    zoom = provider("zoom")(secrets=["new", "old"])
    body = b'{"event":"endpoint.url_validation","payload":{"plainToken":"abc"}}'
    for secret in ("new", "old"):
        request = provider("zoom")(secrets=secret).signed(body, 5)
        answer = zoom.handshake(request)
        assert answer is not None
        assert json.loads(answer.body)["encryptedToken"] == hmac.new(secret.encode(), b"abc", "sha256").hexdigest()


def source(**options: Any) -> Source:
    known = provider("github")(secrets="k")
    return Source("s", "s", known.verifier, known.read, known.document, known.deleted, **options)


def test_a_source_answers_probes_and_unverified_handshakes_safely() -> None:
    page = Response(200, b"<b>", (("content-type", "text/html"),))
    made = source(probe=lambda request: page, unverified_handshake=lambda request: 1 / 0)
    answer = made.answer_probe(Request("s", "GET", Headers(), b""))
    assert answer is not None
    assert answer.status == 400
    assert made.answer_unverified(Request("s", "POST", Headers(), b"")) is None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"accepted": Response(301)}, "2xx"),
        ({"accepted": Response(500)}, "2xx"),
        ({"refused_status": 410}, "410"),
        ({"refused_status": 500}, "4xx"),
        ({"refused_status": 200}, "4xx"),
    ],
)
def test_answers_that_a_provider_would_misunderstand_are_told_at_start(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        source(**options)


def test_a_crc_of_x_signs_nothing_that_could_be_an_event() -> None:
    source = x(secrets="consumer-secret")
    forged = b'{"for_user_id":"1","tweet_create_events":[{"id_str":"9"}]}'
    for token in (forged.decode(), f"\n {forged.decode()}", "[]", '"a"', "\u00e4", "", "a" * 513):
        answer = source.answer_probe(Request("x", "GET", Headers(), b"", query=urlencode({"crc_token": token})))
        assert answer is not None, token
        assert (answer.status, answer.body) == (400, b""), token


@pytest.mark.parametrize("token", ["challenge_string", "1", "null", " ", "2026-01-01"])
def test_the_answer_to_a_crc_of_x_verifies_no_body(token: str) -> None:
    source = x(secrets="consumer-secret")
    answer = source.answer_probe(Request("x", "GET", Headers(), b"", query=urlencode({"crc_token": token})))
    assert answer is not None
    headers = Headers([("x-twitter-webhooks-signature", document(answer)["response_token"])])
    with pytest.raises(NotVerified):
        source.verifier.verify(Request("x", "POST", headers, token.encode()), NOW)


def test_the_answer_to_a_challenge_of_braintree_verifies_no_payload() -> None:
    source = braintree(secrets="private", public_key="public")
    challenge = "0123456789abcdef0123"
    answer = source.answer_probe(Request("braintree", "GET", Headers(), b"", query=f"bt_challenge={challenge}"))
    assert answer is not None
    assert answer.status == 200
    for payload in (challenge, challenge + "\n"):
        body = urlencode({"bt_signature": answer.body.decode(), "bt_payload": payload}).encode()
        with pytest.raises(NotVerified):
            source.verifier.verify(Request("braintree", "POST", Headers(), body), NOW)
