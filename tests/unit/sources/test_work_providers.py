"""What is particular to providers of code, issues, tickets and mail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookledger.delivery import Delivery, Event
from hookledger.errors import Cause, NotVerified, SecretError
from hookledger.http import Headers, Request
from hookledger.sources import Source, bitbucket, gitlab, jira, linear, postmark, zendesk
from hookledger.version import read_version
from tests.unit.sources.made import NOW, deliveries


def request(body: Any, *headers: tuple[str, str]) -> Request:
    return Request("s", "POST", Headers(headers), json.dumps(body).encode())


def read(source: Source, body: Any, *headers: tuple[str, str]) -> Event:
    (event,) = source.read(request(body, *headers))
    return event


def delivered(source: Source, body: Any, *headers: tuple[str, str]) -> Delivery:
    (delivery,) = deliveries(source, request(body, *headers))
    return delivery


def in_order(*events: Event) -> bool:
    versions = [read_version(each.version) for each in events]
    assert None not in versions
    return versions == sorted(versions)  # type: ignore[type-var]


# Bitbucket

cloud = bitbucket(secrets="hush")


def test_bitbucket_cloud_numbers_pull_requests_and_issues_apart() -> None:
    repository = {"uuid": "{r}"}
    assert read(cloud, {"repository": repository, "pullrequest": {"id": 1}}).resource == "pullrequest/{r}/1"
    assert read(cloud, {"repository": repository, "issue": {"id": 1}}).resource == "issue/{r}/1"
    push = read(cloud, {"repository": repository, "push": {"changes": []}}, ("X-Event-Key", "repo:push"))
    assert (push.event_type, push.resource, push.version) == ("repo:push", "repository/{r}", None)


def test_bitbucket_data_center_has_other_names_for_the_same() -> None:
    body = {
        "eventKey": "pr:deleted",
        "pullRequest": {"id": 10, "updatedDate": 1505783592000, "toRef": {"repository": {"id": 84}}},
    }
    event = read(cloud, body, ("X-Request-Id", "r-1"), ("X-Hook-UUID", "h-1"))
    assert (event.event_id, event.event_type, event.resource) == ("r-1", "pr:deleted", "pullrequest/84/10")
    assert in_order(read(cloud, {"pullrequest": {"id": 1, "updated_on": "2017-09-19T01:13:11+00:00"}}), event)
    assert delivered(cloud, body).deleted


def test_a_deleted_comment_deletes_no_pull_request() -> None:
    gone = delivered(cloud, {"pullrequest": {"id": 1}}, ("X-Event-Key", "pullrequest:comment_deleted"))
    assert not gone.deleted


# GitLab

lab = gitlab(secrets="hook-token")


def test_gitlabs_jobs_of_a_branch_are_told_apart_and_in_order() -> None:
    job = {"object_kind": "build", "project_id": 380, "ref": "main", "build_id": 1977}
    times: dict[str, Any] = {"build_created_at": "2021-02-23 02:41:37 UTC", "build_started_at": None}
    created = read(lab, {**job, **times, "build_finished_at": None})
    running = read(lab, {**job, **times, "build_started_at": "2021-02-23 02:41:38 UTC"})
    finished = read(lab, {**job, **times, "build_finished_at": "2021-02-23 02:41:40.886 UTC"})
    assert {each.resource for each in (created, running, finished)} == {"build/1977"}
    assert in_order(created, running, finished)


def test_gitlabs_releases_are_told_by_their_action() -> None:
    gone = delivered(lab, {"object_kind": "release", "id": 1, "action": "delete"})
    assert (gone.event_type, gone.resource, gone.deleted) == ("release.delete", "release/1", True)


# Jira

tracker = jira(secrets="hush")


@pytest.mark.parametrize(
    ("event", "resource", "deleted"),
    [
        ("jira:issue_created", "issue/10", False),
        ("jira:issue_deleted", "issue/10", True),
        ("comment_created", "comment/10", False),
        ("comment_deleted", "comment/10", True),
        ("user_updated", "user/99:27", False),
        ("issuelink_created", "issuelink/7", False),
        ("board_deleted", "board/3", True),
        ("project_soft_deleted", "project/4", True),
        ("project_restored_deleted", "project/4", False),
        ("option_voting_changed", None, False),
    ],
)
def test_jira_events_are_about_what_they_are_named_after(event: str, resource: str | None, deleted: bool) -> None:
    things = {"issue": "10", "comment": "10", "board": 3, "project": 4, "issueLink": 7}
    body = {name: {"id": number} for name, number in things.items()}
    delivery = delivered(tracker, {"webhookEvent": event, "user": {"accountId": "99:27"}, **body})
    assert (delivery.resource, delivery.deleted) == (resource, deleted)


def test_jiras_deletion_is_newer_than_the_last_update() -> None:
    issue = {"id": "1", "fields": {"updated": "2018-05-07T13:03:57.700+0000"}}
    updated = read(tracker, {"webhookEvent": "jira:issue_updated", "timestamp": 1525698237764, "issue": issue})
    gone = read(tracker, {"webhookEvent": "jira:issue_deleted", "timestamp": 1525698237765, "issue": issue})
    assert updated.resource == gone.resource
    assert in_order(updated, gone)
    assert updated.version != gone.version


# Linear

board = linear(secrets="lin_wh_1")


def test_linears_time_is_in_the_signed_body() -> None:
    sent = board.signed(b'{"action":"update","type":"Issue","webhookTimestamp":0}', NOW)
    board.verifier.verify(sent, NOW + 60)
    for late in (NOW + 62, NOW - 62):
        with pytest.raises(NotVerified) as caught:
            board.verifier.verify(sent, late)
        assert caught.value.cause is Cause.CLOCK
    linear(secrets="lin_wh_1", tolerance=3600).verifier.verify(sent, NOW + 3600)


def test_linears_removal_is_newer_than_the_last_update() -> None:
    data = {"id": "539068e2", "updatedAt": "2023-11-14T22:13:18.084Z"}
    updated, removed = (
        read(board, {"type": "Issue", "action": action, "createdAt": at, "data": data})
        for action, at in (("update", "2023-11-14T22:13:18.084Z"), ("remove", "2023-11-14T22:14:00.000Z"))
    )
    assert updated.resource == removed.resource == "Issue/539068e2"
    assert in_order(updated, removed)
    assert updated.version != removed.version


# Zendesk

TEST_SECRET = "dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ=="
desk = zendesk(secrets="hush")


def test_the_secret_that_zendesk_has_published_is_refused() -> None:
    with pytest.raises(SecretError, match="is one that the provider has published"):
        zendesk(secrets=["hush", TEST_SECRET])


def test_a_body_that_a_zendesk_user_wrote_is_known_by_the_call() -> None:
    written = {"id": "35436", "type": "incident", "subject": "Wobbly chair", "time": "soon"}
    first, second = (read(desk, written, ("X-Zendesk-Webhook-Invocation-Id", number)) for number in ("1", "2"))
    assert (first.event_id, second.event_id) == ("1", "2")
    assert (first.resource, first.version) == (None, None)


@pytest.mark.parametrize(
    ("kind", "deleted"),
    [("user.deleted", True), ("ticket.soft_deleted", True), ("ticket.undeleted", False), ("ticket.created", False)],
)
def test_zendesk_deletions(kind: str, deleted: bool) -> None:
    assert delivered(desk, {"type": f"zen:event-type:{kind}", "id": "e"}).deleted is deleted


# Postmark

mail = postmark(secrets="user:password")


def test_what_happens_to_a_message_is_told_apart_by_whom_and_when() -> None:
    opened = {
        "RecordType": "Open",
        "MessageID": "m-1",
        "Recipient": "a@example.com",
        "ReceivedAt": "2019-11-05T16:33:54.9Z",
    }
    changes = ({}, {"Recipient": "b@example.com"}, {"ReceivedAt": "2019-11-05T16:33:55.9Z"}, {"RecordType": "Click"})
    assert len({read(mail, {**opened, **change}).event_id for change in changes}) == len(changes)


def test_a_bounce_is_about_the_same_as_its_delivery() -> None:
    delivery = {"RecordType": "Delivery", "MessageID": "m-1", "Recipient": "a@example.com"}
    bounce = {"RecordType": "Bounce", "MessageID": "m-1", "ID": 42, "Email": "a@example.com"}
    before = read(mail, {**delivery, "DeliveredAt": "2019-11-05T16:33:54.9070259Z"})
    after = read(mail, {**bounce, "BouncedAt": "2019-11-05T16:33:55.9070259Z"})
    assert before.resource == after.resource == "m-1/a@example.com"
    assert in_order(before, after)


def test_a_received_message_bears_no_record_type() -> None:
    event = read(mail, {"MessageID": "m-2", "FromFull": {"Email": "a@example.com"}, "Date": "Fri, 1 Aug 2014"})
    assert (event.event_id, event.event_type, event.resource) == ("m-2", "Inbound", "m-2")


@pytest.mark.parametrize("secret", ["password", ":password", "user:"])
def test_a_postmark_secret_is_user_and_password(secret: str) -> None:
    with pytest.raises(SecretError, match="must be user:password"):
        postmark(secrets=secret)
