"""Google: Pub/Sub with a token for an audience and an account, and the channels of its other APIs."""

from __future__ import annotations

from typing import Any

import pytest

from hookledger.errors import Cause, NotVerified, SetupError
from hookledger.http import Headers, Request
from hookledger.sources import Source, google_calendar, google_pubsub
from hookledger.version import read_version
from tests.unit.sources.certificates_made import rsa_key
from tests.unit.sources.conftest import Deliver
from tests.unit.sources.fetched import GOOGLE_KEY, fetching, google_claims, key_document, key_set, token
from tests.unit.sources.made import NOW

AUDIENCE, ACCOUNT = "https://example.com/webhooks/google-pubsub", "push@example-project.iam.gserviceaccount.com"
KEYS = {"https://www.googleapis.com/oauth2/v3/certs": key_set(key_document(rsa_key("google"), GOOGLE_KEY, "RS256"))}


def source() -> Source:
    return google_pubsub(audience=AUDIENCE, service_account=ACCOUNT, fetch=fetching(KEYS))


def sent(prefix: str = "Bearer ", **changed: Any) -> Request:
    made = token(google_claims(NOW, **changed), rsa_key("google"), "RS256", GOOGLE_KEY)
    return Request("google-pubsub", "POST", Headers([("authorization", prefix + made)]), b"{}")


def refused(request: Request, now: float = NOW) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        source().verifier.verify(request, now)
    return caught.value


def test_a_token_for_us_verifies_until_it_ends() -> None:
    for request in (sent(), sent("bearer "), sent(iss="accounts.google.com")):
        source().verifier.verify(request, NOW)
        source().verifier.verify(request, NOW + 3600)
        assert refused(request, NOW + 3700).cause is Cause.CLOCK
        assert refused(request, NOW - 100).cause is Cause.CLOCK


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": "https://example.com/webhooks/other"},
        {"aud": [AUDIENCE]},
        {"aud": None},
        {"email": "other@example-project.iam.gserviceaccount.com"},
        {"email": None},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email_verified": None},
        {"iss": "https://accounts.google.com.evil.example"},
        {"iss": None},
        {"exp": None},
    ],
)
def test_any_other_token_of_google_is_refused(changed: dict[str, Any]) -> None:
    refused(sent(**changed))


@pytest.mark.parametrize("prefix", ["", "Basic ", "Bearer", "Token "])
def test_a_header_without_a_bearer_token_is_refused(prefix: str) -> None:
    refused(sent(prefix))
    assert refused(Request("google-pubsub", "POST", Headers(), b"{}")).cause is Cause.SIGNATURE_MISSING


@pytest.mark.parametrize("missing", ["audience", "service_account"])
def test_what_tells_our_subscription_from_others_must_be_set(missing: str) -> None:
    settings = {"audience": AUDIENCE, "service_account": ACCOUNT}
    with pytest.raises(SetupError, match=f"needs {missing}="):
        google_pubsub(**{**settings, missing: None})


def test_a_message_is_acknowledged_with_204() -> None:
    assert source().accepted.status == 204


# Channels


def test_a_message_of_a_channel_has_no_body(deliver: Deliver) -> None:
    channel = google_calendar(secrets="t-1")
    headers = [
        ("X-Goog-Channel-ID", "c-1"),
        ("X-Goog-Channel-Token", "t-1"),
        ("X-Goog-Message-Number", "1"),
        ("X-Goog-Resource-ID", "r-1"),
        ("X-Goog-Resource-State", "sync"),
    ]
    request = Request("google-calendar", "POST", Headers(headers), b"")
    channel.verifier.verify(request, NOW)
    delivery = deliver(channel, request)
    assert (delivery.event_id, delivery.event_type, delivery.resource) == ("c-1/1", "sync", "c-1/r-1")
    assert delivery.version == read_version(1)
    assert not delivery.deleted
    gone = Headers([(name, {"sync": "not_exists"}.get(value, value)) for name, value in headers])
    assert deliver(channel, Request("google-calendar", "POST", gone, b"")).deleted
    for token_given in ("t-2", "", "T-1"):
        other = Headers([(name, token_given if name.endswith("Token") else value) for name, value in headers])
        with pytest.raises(NotVerified):
            channel.verifier.verify(Request("google-calendar", "POST", other, b""), NOW)
