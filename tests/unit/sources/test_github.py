"""What the source `github` reads from a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from hookledger.delivery import Delivery, Event
from hookledger.errors import SetupError, UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources import Source, github

source = github("acme-github", secrets="k-test-1")
UPDATED = "2024-05-01T10:00:00Z"


def request(event: str, document: Any, *more: tuple[str, str], body: bytes | None = None) -> Request:
    headers = [("x-github-event", event), ("x-github-delivery", "72d3162e"), *more]
    return Request(source.name, "POST", Headers(headers), json.dumps(document).encode() if body is None else body)


def read(event: str, document: Any, *more: tuple[str, str]) -> Event:
    (read_event,) = source.read(request(event, document, *more))
    return read_event


@pytest.mark.parametrize(
    ("event", "document", "expected"),
    [
        (
            "pull_request",
            {"action": "opened", "pull_request": {"id": 7, "updated_at": UPDATED}},
            Event("72d3162e", "pull_request.opened", "pull_request/7", UPDATED),
        ),
        (
            "issues",
            {"action": "edited", "issue": {"id": 7, "updated_at": UPDATED}},
            Event("72d3162e", "issues.edited", "issue/7", UPDATED),
        ),
        (
            "issue_comment",
            {"action": "created", "issue": {"id": 7}, "comment": {"id": 8, "updated_at": UPDATED}},
            Event("72d3162e", "issue_comment.created", "issue_comment/8", UPDATED),
        ),
        (
            "dependabot_alert",
            {"action": "fixed", "alert": {"number": 3, "updated_at": UPDATED}, "repository": {"id": 9}},
            Event("72d3162e", "dependabot_alert.fixed", "dependabot_alert/9/3", UPDATED),
        ),
        ("push", {"ref": "refs/heads/main"}, Event("72d3162e", "push")),
        ("ping", {"zen": "Keep it logically awesome.", "hook_id": 1}, Event("72d3162e", "ping")),
        ("new_event", {"action": 5, "new_event": "text"}, Event("72d3162e", "new_event")),
        ("label", {"action": "", "label": {"id": None}, "repository": 3}, Event("72d3162e", "label")),
    ],
)
def test_an_event_is_read(event: str, document: Any, expected: Event) -> None:
    assert read(event, document) == expected


def test_resources_of_different_kinds_do_not_share_a_watermark() -> None:
    issue = read("issues", {"issue": {"id": 7}})
    release = read("release", {"release": {"id": 7}})
    assert issue.resource != release.resource


def test_b020_a_form_is_read_after_verification(deliver: Callable[[Source, Request], Delivery]) -> None:
    document = {"action": "deleted", "release": {"id": 1, "updated_at": UPDATED, "name": "♥"}}
    body = urlencode({"payload": json.dumps(document)}).encode()
    form = request("release", None, ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"), body=body)
    delivery = deliver(source, form)
    assert delivery.event_type == "release.deleted"
    assert delivery.resource == "release/1"
    assert delivery.data == document
    assert delivery.deleted


@pytest.mark.parametrize(
    ("body", "content_type", "reason"),
    [
        (b"{", "application/json", "not JSON"),
        (b"[1]", "application/json", "not an object"),
        (b"{}", "application/x-www-form-urlencoded", "without the field 'payload'"),
        (b"payload=%7B", "application/x-www-form-urlencoded", "not JSON"),
        (b"payload=%22%E9%22", "application/x-www-form-urlencoded", "byte 0xe9"),
    ],
)
def test_an_unreadable_body_keeps_the_id_of_its_header(body: bytes, content_type: str, reason: str) -> None:
    (event,) = source.read(request("push", None, ("Content-Type", content_type), body=body))
    assert event.event_id == "72d3162e"
    assert event.event_type == "push"
    assert reason in str(event.unreadable)


def test_the_document_of_an_unreadable_body_is_refused(
    deliver: Callable[[Source, Request], Delivery],
) -> None:
    with pytest.raises(UnreadableBody):
        _ = deliver(source, request("push", None, body=b"{")).data


def test_b026_a_missing_or_blank_delivery_header_is_no_id() -> None:
    for headers in ([], [("X-GitHub-Delivery", " ")]):
        (event,) = source.read(Request(source.name, "POST", Headers(headers), b"{}"))
        assert event.event_id is None
        assert event.event_type == ""


def test_a_signed_request_says_what_github_would_say() -> None:
    body = b'{"action":"opened","pull_request":{"id":7}}'
    assert source.sign is not None
    headers = source.sign(body, 0)
    signed = Request(source.name, "POST", headers, body)
    source.verifier.verify(signed, 0)
    (event,) = source.read(signed)
    assert event.event_type == "pull_request.opened"
    assert event.event_id
    assert source.sign(body, 99) == headers
    assert source.sign(body + b" ", 0).get("X-GitHub-Delivery") != event.event_id


def test_a_setting_that_github_has_no_use_for_is_told_with_those_that_it_takes() -> None:
    for setting in ({"tolerance": 60}, {"url": "https://example.com/"}):
        with pytest.raises(SetupError, match=r"is not used: .*; it takes secrets=, content_encoding=$"):
            github(secrets="k-test-1", **setting)
    with pytest.raises(SetupError, match="tolerence= is not known"):
        github(secrets="k-test-1", tolerence=60)
    assert github(secrets="k-test-1", content_encoding="signed-plain").content_encoding == "signed-plain"
