"""Contentful, Atlassian Connect and Netlify: what is signed is put together of the request."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from typing import Any

import jwt
import pytest

from hookledger.errors import Cause, NotVerified
from hookledger.http import Headers, Request
from hookledger.sources import Account, Source, contentful, jira_connect, netlify
from hookledger.sources.providers.jira_connect import client_key, query_hash
from tests.unit.sources.made import NOW

SECRET = "0123456789abcdef" * 4


def refused(source: Source, request: Request, now: float = NOW) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        source.verifier.verify(request, now)
    return caught.value


# Contentful

TIME = NOW * 1000
LISTED = "x-contentful-signed-headers,x-contentful-timestamp,x-contentful-topic"
# Written out here after https://github.com/contentful/node-apps-toolkit
CANONICAL = (
    "POST\n{}\nx-contentful-signed-headers:"
    + LISTED
    + f";x-contentful-timestamp:{TIME};x-contentful-topic:T.publish\n{{}}"
)
shop = contentful(secrets=SECRET, url="https://example.com/webhooks/contentful")


def from_contentful(
    path: str = "/webhooks/contentful", body: str = "{}", query: str = "", changed: dict[str, str] | None = None
) -> Request:
    signature = hmac.new(SECRET.encode(), CANONICAL.format(path, body).encode(), hashlib.sha256).hexdigest()
    headers = {
        "X-Contentful-Topic": " T.publish ",
        "X-Contentful-Timestamp": str(TIME),
        "X-Contentful-Signed-Headers": LISTED,
        "X-Contentful-Signature": signature,
        "X-Other": "1",
        **(changed or {}),
    }
    return Request("contentful", "POST", Headers(headers.items()), body.encode(), query=query)


def test_contentful_signs_method_path_headers_and_body() -> None:
    shop.verifier.verify(from_contentful(), NOW)
    shop.verifier.verify(from_contentful(body='{"a": "Zo\u00eb"}'), NOW)
    shop.verifier.verify(from_contentful(changed={"X-Other": "2"}), NOW)
    for wrong in (
        replace(from_contentful(), body=b"{ }"),
        replace(from_contentful(), method="PUT"),
        from_contentful(path="/webhooks/other"),
        from_contentful(changed={"X-Contentful-Topic": "T.delete"}),
        from_contentful(changed={"X-Contentful-Timestamp": str(TIME + 1)}),
        from_contentful(changed={"X-Contentful-Signed-Headers": "x-contentful-signed-headers,x-contentful-timestamp"}),
        from_contentful(changed={"X-Contentful-Signed-Headers": ",".join(reversed(LISTED.split(",")))}),
        from_contentful(changed={"X-Contentful-Signature": "0" * 64}),
        from_contentful(changed={"X-Contentful-Signature": "\xe9"}),
    ):
        assert refused(shop, wrong).cause is Cause.NO_MATCH


def test_contentful_escapes_the_query_twice_and_the_path_once() -> None:
    odd = contentful(secrets=SECRET, url="https://example.com/caf\u00e9/a,b?x=1 2".replace(" ", "+"))
    odd.verifier.verify(from_contentful(path="/caf%C3%A9/a,b?x%253D1%252B2"), NOW)
    odd.verifier.verify(from_contentful(path="/caf%C3%A9/a,b?y%253D(1)%2526z", query="y=(1)&z"), NOW)
    refused(odd, from_contentful(path="/caf%C3%A9/a,b?x=1+2"))


def test_contentful_s_requests_count_for_thirty_seconds_or_as_configured() -> None:
    shop.verifier.verify(from_contentful(), NOW + 30)
    assert refused(shop, from_contentful(), NOW + 31).cause is Cause.CLOCK
    assert refused(shop, from_contentful(), NOW - 31).cause is Cause.CLOCK
    slow = contentful(secrets=SECRET, url="https://example.com/webhooks/contentful", tolerance=600)
    slow.verifier.verify(from_contentful(), NOW + 500)


@pytest.mark.parametrize("name", ["Signature", "Signed-Headers", "Timestamp"])
def test_contentful_s_missing_headers_are_named(name: str) -> None:
    request = from_contentful()
    left = Headers([pair for pair in request.headers if pair[0] != f"X-Contentful-{name}"])
    error = refused(shop, replace(request, headers=left))
    assert error.cause is Cause.SIGNATURE_MISSING
    assert name in str(error)
    refused(shop, from_contentful(changed={"X-Contentful-Signed-Headers": "a," * 100}))


# Atlassian Connect


def from_jira(
    canonical: str = "POST&/jira/issue-updated&",
    key: str = SECRET,
    query: str = "",
    prefix: str = "JWT ",
    **changed: Any,
) -> Request:
    claims = {"iss": "site-1", "iat": NOW, "exp": NOW + 180, "qsh": hashlib.sha256(canonical.encode()).hexdigest()}
    made = jwt.api_jws.PyJWS().encode(json.dumps({**claims, **changed}).encode(), key.encode() * 4, "HS256")
    headers = [("Authorization", prefix + made)] if prefix else []
    return Request("jira-connect", "POST", Headers(headers), b"{}", query=query or ("" if prefix else f"jwt={made}"))


site = jira_connect(secrets=[SECRET * 4, "old" * 4], url="https://example.com/jira/issue-updated/")


def test_connect_signs_the_method_the_path_and_the_query() -> None:
    site.verifier.verify(from_jira(), NOW)
    site.verifier.verify(from_jira(prefix="jwt "), NOW)
    site.verifier.verify(from_jira(prefix=""), NOW)
    query = "b=2&a=x%20y&a=%C3%A9&a=*&user_id=admin&jwt=ignored&empty="
    canonical = "POST&/jira/issue-updated&a=%2A,%C3%A9,x%20y&b=2&empty=&user_id=admin"
    site.verifier.verify(from_jira(canonical, query=query), NOW)
    for wrong in (
        from_jira("GET&/jira/issue-updated&"),
        from_jira("POST&/jira&"),
        from_jira(query="a=1"),
        from_jira(qsh="context-qsh"),
        from_jira(qsh=None),
        from_jira(qsh="\u00e9"),
        from_jira(key="another-key-another-key"),
    ):
        assert refused(site, wrong).cause is Cause.NO_MATCH


def test_connect_s_published_hash_of_a_query() -> None:
    """https://developer.atlassian.com/cloud/bitbucket/query-string-hash/"""
    url = "https://example.com"
    assert query_hash("GET", url, "") == hashlib.sha256(b"GET&/&").hexdigest()
    assert query_hash("get", f"{url}/a&b", "") == hashlib.sha256(b"GET&/a%26b&").hexdigest()


def test_connect_s_tokens_end() -> None:
    site.verifier.verify(from_jira(), NOW + 180)
    assert refused(site, from_jira(), NOW + 300).cause is Cause.CLOCK
    assert refused(site, from_jira(exp=None)).cause is Cause.TIMESTAMP_MALFORMED


def test_connect_s_sites_have_secrets_of_their_own() -> None:
    secrets = {"site-1": SECRET * 4}

    def secrets_of(request: Request) -> Account | None:
        key = client_key(request)
        return Account(key, [secrets[key]]) if key in secrets else None

    many = jira_connect(secrets=secrets_of, url="https://example.com/jira/issue-updated")
    found = many.verifier.verify(from_jira(), NOW)
    assert found is not None
    assert found.account == "site-1"
    assert refused(many, from_jira(iss="site-2")).cause is Cause.UNKNOWN_ACCOUNT
    assert refused(many, from_jira(iss=None)).cause is Cause.UNKNOWN_ACCOUNT
    assert refused(many, Request("jira-connect", "POST", Headers(), b"{}")).cause is Cause.UNKNOWN_ACCOUNT


def test_connect_s_query_may_hold_anything() -> None:
    for query in ("%ff=%ff", "a=1;b", "&" * 5000, "a=" * 5000, "\ud800=1"):
        refused(site, from_jira(query=query))
    for query in ("%ff=%ff", "&" * 5000, "\ud800=1", "jwt=", "jwt=x", "jwt=%ff", "jwt=a.b.c"):
        refused(site, Request("jira-connect", "POST", Headers(), b"{}", query=query))


# Netlify


def from_netlify(body: bytes = b"{}", key: str = SECRET, **changed: Any) -> Request:
    claims = {"iss": "netlify", "sha256": hashlib.sha256(body).hexdigest(), **changed}
    made = jwt.api_jws.PyJWS().encode(json.dumps(claims).encode(), key.encode(), "HS256")
    return Request("netlify", "POST", Headers([("X-Webhook-Signature", made)]), body)


def test_netlify_signs_the_hash_of_the_body() -> None:
    deploys = netlify(secrets=["new", SECRET])
    found = deploys.verifier.verify(from_netlify(), NOW)
    assert found is not None
    assert found.secret == 1
    assert refused(deploys, replace(from_netlify(), body=b"{ }")).cause is Cause.BODY_CHANGED
    assert refused(deploys, from_netlify(sha256=None)).cause is Cause.BODY_CHANGED
    assert refused(deploys, from_netlify(iss="other")).cause is Cause.KEY_NOT_TRUSTED
    assert refused(deploys, from_netlify(key="another-key-another-key-another-key")).cause is Cause.NO_MATCH
    assert refused(deploys, Request("netlify", "POST", Headers(), b"{}")).cause is Cause.SIGNATURE_MISSING
