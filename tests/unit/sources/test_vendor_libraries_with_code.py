"""What vendors' own libraries sign we verify, and what we sign they verify: providers with code of their own."""

from __future__ import annotations

import json
import warnings
from typing import Any
from urllib.parse import parse_qs, urlencode

import atlassian_jwt
import pytest
from Adyen.util import is_valid_hmac_notification
from plivo.utils.signature_v3 import validate_v3_signature

from hookledger.http import Headers, Request
from hookledger.sources import adyen, braintree, jira_connect, plivo
from hookledger.sources.catalogue import provider
from hookledger.sources.providers.jira_connect import query_hash
from tests.unit.sources.made import NOW

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it deprecates what it uses itself
    import braintree as vendor

KINDS = vendor.WebhookNotification.Kind


def gateway() -> Any:
    environment = vendor.Environment.Sandbox
    return vendor.BraintreeGateway(
        vendor.Configuration(
            environment, merchant_id="m", public_key="integration_public_key", private_key="integration_private_key"
        )
    )


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        (KINDS.SubscriptionWentPastDue, "my_id"),
        (KINDS.DisputeOpened, "my_id"),
        (KINDS.Disbursement, "my_id"),
        (KINDS.Check, None),
        (KINDS.AccountUpdaterDailyReport, None),
    ],
)
def test_braintree(kind: str, resource: str | None) -> None:
    theirs, ours = gateway(), braintree(secrets="integration_private_key", public_key="integration_public_key")
    sample = theirs.webhook_testing.sample_notification(kind, "my_id")
    body = urlencode(sample).encode()
    request = Request("braintree", "POST", Headers(), body)
    ours.verifier.verify(request, NOW)
    (event,) = ours.read(request)
    assert (event.event_type, event.resource, event.unreadable) == (kind, resource, None)
    signed = parse_qs(ours.signed(body, NOW).body.decode())
    assert theirs.webhook_notification.parse(signed["bt_signature"][0], signed["bt_payload"][0]).kind == kind


def test_adyen() -> None:
    key = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
    signed = json.loads(adyen(secrets=key).signed(provider("adyen").example().body, NOW).body)
    for item in signed["notificationItems"]:
        assert is_valid_hmac_notification({"notificationItems": [item]}, key)


@pytest.mark.parametrize(
    "url", ["https://example.com", "https://example.com/p", "https://example.com/p?b=x%20y&a=1&a=0"]
)
def test_plivo(url: str) -> None:
    fields = {"To": "1", "From": "+1 2", "Empty": "", "Several": ["b", "a"]}
    signed = plivo(secrets="token", url=url).signed(urlencode(fields, doseq=True).encode(), NOW)
    nonce, signature = (signed.headers.get(f"X-Plivo-Signature-V3{suffix}") for suffix in ("-Nonce", ""))
    assert validate_v3_signature("POST", url, nonce, "token", signature, fields)


@pytest.mark.parametrize(
    "path", ["/jira?user_id=a", "", "/", "/a%26b/?q", "/jira/?x=1&y=a%20b&x=0&z=%C3%A9*~&e=", "/a&b?jwt=x&y=1"]
)
def test_atlassian_connect(path: str) -> None:
    url = f"https://example.com{path}"
    bare, _, query = url.partition("?")
    assert query_hash("POST", bare, query) == atlassian_jwt.url_utils.hash_url("POST", url)
    token = atlassian_jwt.encode_token("POST", url, "site-1", "k" * 40)
    request = Request("jira-connect", "POST", Headers([("Authorization", f"JWT {token}")]), b"{}", query=query)
    source = jira_connect(secrets="k" * 40, url=bare)
    source.verifier.verify(request, _issued_at(token))


def _issued_at(token: str) -> float:
    import jwt

    return float(jwt.decode(token, options={"verify_signature": False})["iat"])
