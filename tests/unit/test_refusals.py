"""The log of refused requests: every reason, and a flood in few lines."""

from __future__ import annotations

import logging

import pytest

from hookledger.errors import BodyTooLarge, Cause, NotVerified, Unavailable, UnknownSource
from hookledger.receive.refusals import MOST_LINES, WINDOW, RefusalLog

logger = logging.getLogger("tests.refusals")


@pytest.fixture
def clock() -> list[float]:
    """What the time is."""
    return [0.0]


@pytest.fixture
def log(clock: list[float], caplog: pytest.LogCaptureFixture) -> RefusalLog:
    """With two sources."""
    caplog.set_level(logging.INFO, "tests.refusals")
    return RefusalLog(logger, frozenset({"shop", "hub"}), lambda: clock[0])


def test_a_refusal_is_told_with_its_reason(log: RefusalLog, caplog: pytest.LogCaptureFixture) -> None:
    log.tell("shop", NotVerified("the header X-Sig is missing", Cause.SIGNATURE_MISSING))
    log.tell("shop", BodyTooLarge("it has 26 MB"))
    first, second = caplog.records
    assert (first.levelname, second.levelname) == ("WARNING", "INFO")
    assert first.getMessage() == "refused a request to 'shop' with 401: the header X-Sig is missing"
    assert (vars(first)["source"], vars(first)["status"], vars(first)["cause"]) == ("shop", 401, "signature-missing")


def test_a_flood_becomes_a_few_lines_and_a_count(
    log: RefusalLog, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(1000):
        log.tell("shop", NotVerified("no"))
    assert len(caplog.records) == MOST_LINES
    clock[0] = WINDOW
    log.tell("shop", NotVerified("no"))
    told = [record.getMessage() for record in caplog.records[MOST_LINES:]]
    assert told == [
        f"refused {1000 - MOST_LINES} more requests to 'shop' with 401 before, which are not logged",
        "refused a request to 'shop' with 401: no",
    ]


def test_a_flood_hides_no_refusal_of_another_source_or_with_another_status(
    log: RefusalLog, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(1000):
        log.tell("shop", NotVerified("no"))
    log.tell("hub", NotVerified("of the hub"))
    log.tell("shop", Unavailable("away"))
    told = [record.getMessage() for record in caplog.records[MOST_LINES:]]
    assert told == ["refused a request to 'hub' with 401: of the hub", "refused a request to 'shop' with 503: away"]


def test_names_that_senders_make_up_share_one_bound(log: RefusalLog, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1000):
        log.tell(f"made-up-{number}", UnknownSource("no"))
    assert len(caplog.records) == MOST_LINES
    assert len(log._windows) == 1


def test_nothing_is_counted_that_would_not_be_logged(log: RefusalLog, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "tests.refusals")
    log.tell("shop", NotVerified("no"))
    assert log._windows == {}
