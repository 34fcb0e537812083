"""The handshakes of providers: how they look at a URL, or check who is behind it, before they send events.

Each is a function of the request and of the source's settings, and gives None for a request that is another. Those
named `verified` answer requests whose signature was checked; the others answer anybody, so what they give back is plain
text or JSON and bounded (see `reflection`).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64encode
from typing import Any
from urllib.parse import parse_qs

from hookledger.errors import UnreadableBody
from hookledger.http import Request, Response
from hookledger.sources.reading import is_form, read_json
from hookledger.sources.reflection import NO_SNIFF, plain
from hookledger.sources.settings import Settings

LONGEST_CHALLENGE = 4096  # characters
LARGEST_HANDSHAKE = 64 * 1024
"""Bytes of a body that is parsed to see whether it is an unverified handshake."""

_CRC_TOKEN = re.compile(r"[A-Za-z0-9 _.~+/=:-]{1,512}")


def slack_url_verification(request: Request, settings: Settings) -> Response | None:
    """Verified: the body's `challenge` as text. https://docs.slack.dev/reference/events/url_verification"""
    body = _object(request, b"url_verification")
    challenge = body.get("challenge") if body.get("type") == "url_verification" else None
    return plain(challenge) if isinstance(challenge, str) else None


def twitch_challenge(request: Request, settings: Settings) -> Response | None:
    """Verified: the body's `challenge` as text.

    https://dev.twitch.tv/docs/eventsub/handling-webhook-events/#responding-to-a-challenge-request
    """
    if request.headers.get("Twitch-Eventsub-Message-Type") != "webhook_callback_verification":
        return None
    challenge = _object(request).get("challenge")
    return plain(challenge) if isinstance(challenge, str) else None


def zoom_url_validation(request: Request, settings: Settings) -> Response | None:
    """Verified: an HMAC of the body's `plainToken`, repeated every 72 hours.

    https://developers.zoom.us/docs/api/webhooks/#validate-your-webhook-endpoint
    """
    body = _object(request, b"endpoint.url_validation")
    if body.get("event") != "endpoint.url_validation" or not isinstance(body.get("payload"), dict):
        return None
    token = body["payload"].get("plainToken")
    if not isinstance(token, str):
        return None
    encrypted = hmac.new(settings.key_of(request), token.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return _json({"plainToken": token, "encryptedToken": encrypted.hexdigest()})


def discord_ping(request: Request, settings: Settings) -> Response | None:
    """Verified: 204 to the ping of Webhook Events, `{"type":1}` to that of an interactions endpoint.

    https://docs.discord.com/developers/events/webhook-events#preparing-for-events
    """
    body = _small_object(request)
    kind = body.get("type")
    if kind == 0 and kind is not False:
        return Response(204)
    if kind == 1 and kind is not True and "event" not in body:
        return _json({"type": 1})
    return None


def front_challenge(request: Request, settings: Settings) -> Response | None:
    """Verified: the header `X-Front-Challenge` as text.

    https://dev.frontapp.com/docs/application-webhooks
    """
    challenge = request.headers.get("X-Front-Challenge")
    return None if challenge is None or len(challenge) > LONGEST_CHALLENGE else plain(challenge)


def meta_hub_challenge(request: Request, settings: Settings) -> Response | None:
    """GET: `hub.challenge`, if `hub.verify_token` is the source's `verify_token`; else 403.

    https://developers.facebook.com/docs/graph-api/webhooks/getting-started#verification-requests
    """
    query = _query(request)
    if request.method != "GET" or query.get("hub.mode") != "subscribe":
        return None
    wanted = str(settings.options.get("verify_token", ""))
    if not wanted or not _equal(query.get("hub.verify_token", ""), wanted):
        return Response(403)
    return plain(query.get("hub.challenge", ""))


def dropbox_challenge(request: Request, settings: Settings) -> Response | None:
    """GET: the parameter `challenge` as text. https://www.dropbox.com/developers/reference/webhooks"""
    challenge = _query(request).get("challenge") if request.method == "GET" else None
    return None if challenge is None else plain(challenge)


def x_crc(request: Request, settings: Settings) -> Response | None:
    """GET: an HMAC of the parameter `crc_token`, repeated. Anybody can ask for it, and the key is the one that signs
    bodies: what could be the body of an event is not signed.

    https://docs.x.com/x-api/webhooks/introduction
    """
    token = _query(request).get("crc_token") if request.method == "GET" else None
    if token is None:
        return None
    if not _CRC_TOKEN.fullmatch(token):
        return Response(400)
    digest = hmac.digest(settings.key_of(request), token.encode("utf-8", "surrogateescape"), "sha256")
    return _json({"response_token": f"sha256={b64encode(digest).decode()}"})


def okta_verification(request: Request, settings: Settings) -> Response | None:
    """GET: the header `x-okta-verification-challenge` as JSON.

    https://developer.okta.com/docs/concepts/event-hooks/#one-time-verification-request
    """
    challenge = request.headers.get("x-okta-verification-challenge") if request.method == "GET" else None
    return None if challenge is None else _json({"verification": challenge})


def braintree_challenge(request: Request, settings: Settings) -> Response | None:
    """GET: the public key and an HMAC of the parameter `bt_challenge`, with SHA-1 of the private key as the key.

    https://developer.paypal.com/braintree/docs/guides/webhooks/create
    """
    challenge = _query(request).get("bt_challenge") if request.method == "GET" else None
    if challenge is None:
        return None
    if not re.fullmatch(r"[a-f0-9]{20,32}", challenge):
        return Response(400)
    key = hashlib.sha1(settings.key_of(request)).digest()  # noqa: S324
    digest = hmac.new(key, challenge.encode(), hashlib.sha1).hexdigest()
    return plain(f"{settings.options['public_key']}|{digest}")


def cloudevents_options(request: Request, settings: Settings) -> Response | None:
    """OPTIONS: the permission to send.

    https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md#42-validation-response
    """
    origin = request.headers.get("WebHook-Request-Origin") if request.method == "OPTIONS" else None
    if origin is None or not re.fullmatch(r"[A-Za-z0-9.:*/_-]{1,253}", origin):
        return None
    headers = [("allow", "POST"), ("webhook-allowed-origin", origin)]
    rate = request.headers.get("WebHook-Request-Rate")
    if rate is not None and re.fullmatch(r"[0-9]{1,9}|\*", rate.strip()):
        headers.append(("webhook-allowed-rate", rate.strip()))
    return Response(200, headers=tuple(headers))


def graph_validation_token(request: Request, settings: Settings) -> Response | None:
    """Unverified POST: the parameter `validationToken` as text.

    https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks#notificationurl-validation
    """
    token = _query(request).get("validationToken")
    return None if token is None else plain(token)


def asana_hook_secret(request: Request, settings: Settings) -> Response | None:
    """Unverified POST: the header `X-Hook-Secret` is given back, if the source's `on_secret` function takes it.

    https://developers.asana.com/docs/webhooks-guide#the-webhook-handshake
    """
    secret = request.headers.get("X-Hook-Secret")
    take = settings.options.get("on_secret")
    if secret is None or take is None or not re.fullmatch(r"[\x21-\x7e]{8,256}", secret):
        return None
    if take(request, secret) is not True:
        return Response(403)
    return Response(200, headers=(("x-hook-secret", secret),))


def monday_challenge(request: Request, settings: Settings) -> Response | None:
    """Unverified POST: `{"challenge": ...}` is given back.

    https://developer.monday.com/apps/docs/webhooks
    """
    body = _small_object(request)
    challenge = body.get("challenge")
    return _json({"challenge": challenge}) if isinstance(challenge, str) and len(body) == 1 else None


def notion_verification_token(request: Request, settings: Settings) -> Response | None:
    """Unverified POST: `{"verification_token": ...}` is given to the source's `on_secret` function.

    https://developers.notion.com/reference/webhooks#step-2-verifying-your-subscription
    """
    body = _small_object(request)
    token, take = body.get("verification_token"), settings.options.get("on_secret")
    if not isinstance(token, str) or len(body) != 1 or take is None:
        return None
    return Response(200 if take(request, token) is True else 403)


def woocommerce_ping(request: Request, settings: Settings) -> Response | None:
    """Unverified POST: the form `webhook_id=N`, by which a shop sees whether the URL answers with 200.

    https://github.com/woocommerce/woocommerce/blob/trunk/plugins/woocommerce/includes/class-wc-webhook.php
    """
    is_ping = is_form(request.headers) and re.fullmatch(rb"webhook_id=[0-9]{1,20}", request.body)
    return Response(200) if is_ping else None


def _json(document: dict[str, Any]) -> Response:
    answer = Response.json(200, document)
    return Response(200, answer.body, (*answer.headers, NO_SNIFF))


def _object(request: Request, mark: bytes = b"") -> dict[str, Any]:
    """The JSON object that the body is, or an empty one; events, which lack the mark, are not parsed for it."""
    if mark not in request.body:
        return {}
    try:
        document = read_json(request.body)
    except UnreadableBody:
        return {}
    return document if isinstance(document, dict) else {}


def _small_object(request: Request) -> dict[str, Any]:
    return _object(request) if len(request.body) <= LARGEST_HANDSHAKE else {}


def _query(request: Request) -> dict[str, str]:
    """The first value of every parameter of the query."""
    try:
        parsed = parse_qs(request.query, keep_blank_values=True, errors="surrogateescape", max_num_fields=1000)
    except ValueError:
        return {}
    return {name: values[0] for name, values in parsed.items()}


def _equal(given: str, wanted: str) -> bool:
    """Whether two tokens are equal, in constant time."""
    digests = [hashlib.sha256(each.encode("utf-8", "surrogatepass")).digest() for each in (given, wanted)]
    return hmac.compare_digest(*digests)
