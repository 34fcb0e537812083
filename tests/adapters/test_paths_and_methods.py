"""Where the receiver is found, and what it says to those who only look."""

from __future__ import annotations

import pytest

from tests.adapters.served import Served, event_id

FORWARDED = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "elsewhere.test")]


@pytest.mark.parametrize("end", ["", "/"])
def test_b064_a_slash_at_the_end_makes_no_difference(served: Served, end: str) -> None:
    event = event_id()
    answer = served.post(b"{}", event, path=served.path() + end, headers=FORWARDED)
    assert (answer.status, answer.header("location")) == (200, None)
    assert len(served.stored(event)) == 1


def test_a_query_is_no_part_of_the_name(served: Served) -> None:
    event = event_id()
    assert served.post(b"{}", event, path=served.path() + "?x=1%202&source=other").status == 200
    assert len(served.stored(event)) == 1


def test_the_name_may_be_percent_encoded(served: Served) -> None:
    event = event_id()
    assert served.post(b"{}", event, path=served.path("h%75b")).status == 200
    assert len(served.stored(event)) == 1


@pytest.mark.parametrize(
    "name",
    ["unknown", "HUB", "hub2", "hub%00", "%ff", "hub%0a", "%E2%98%95", "..", "hub%3F", "x" * 3000, "webhooks"],
)
@pytest.mark.parametrize("method", ["POST", "GET", "HEAD"])
def test_an_unknown_source_is_not_found(served: Served, name: str, method: str) -> None:
    answer = served.request(method, served.path(name), [("Content-Length", "0")])
    assert (answer.status, answer.header("location")) == (404, None)


def test_b064_nothing_below_a_source_or_doubled_slashes_redirects(served: Served) -> None:
    for path in (served.path() + "//", "/" + served.path(), served.path().replace("hub", "/hub"), served.path("")):
        answer = served.post(b"{}", event_id(), path=path, headers=FORWARDED)
        assert answer.status in (200, 404), path


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("end", ["", "/"])
def test_b067_a_probe_is_answered_and_is_no_delivery(served: Served, method: str, end: str) -> None:
    before = served.count()
    answer = served.request(method, served.path() + end)
    assert (answer.status, answer.header("location")) == (200, None)
    assert served.count() == before


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "BREW"])
def test_other_methods_are_not_allowed(served: Served, method: str) -> None:
    before = served.count()
    answer = served.request(method, served.path(), [("Content-Length", "2")], b"{}")
    # Some servers refuse a method that they do not know by themselves.
    assert answer.status == 405 or (method in ("BREW", "TRACE") and answer.status in (400, 405, 501))
    assert served.count() == before


def test_the_answer_says_how_long_it_is(served: Served) -> None:
    answer = served.post(b"{}", event_id())
    assert answer.header("content-length") == str(len(answer.body))
    assert answer.header("transfer-encoding") is None
