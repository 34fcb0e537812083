"""Requests that do not verify: what the log says of them, and that they cost little (D3)."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from hookledger import Inbox
from hookledger.http import Headers, Request
from hookledger.receive.refusals import MOST_LINES
from hookledger.sources import diagnosis, github
from hookledger.sources.diagnosis import LogDiagnosis
from tests.integration.receive.conftest import MakeReceiving
from tests.ledger import Ledger
from tests.receiving import Receiving, event, inbox, shop, signed

LOGGER = "hookledger.receive.intake"
SPACED = b'{"id": "e1"}'
COMPACT = b'{"id":"e1"}'


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """What the receiver logs."""
    # On a busy machine the usual time for looking into a refusal may pass before anything was looked at.
    monkeypatch.setattr(diagnosis, "LONGEST", 10.0)
    caplog.set_level(logging.INFO, LOGGER)
    return caplog


REFUSED = {
    "body-reserialised": (replace(signed(shop(), SPACED), body=COMPACT), "spaced JSON"),
    "line-end-changed": (replace(signed(shop(), COMPACT + b"\n"), body=COMPACT), "a newline at the end was lost"),
    "wrong-secret": (signed(shop(secrets="another"), COMPACT), "the secret is probably another one's"),
    "signature-missing": (Request("shop", "POST", Headers(), COMPACT), "the header X-Sig is missing"),
    "other-provider": (
        replace(signed(github(secrets="k-test-1"), COMPACT), source="shop"),
        "the signature of GitHub",
    ),
}


@pytest.mark.parametrize("cause", REFUSED)
def test_the_log_says_why(receiving: Receiving, ledger: Ledger, told: pytest.LogCaptureFixture, cause: str) -> None:
    request, words = REFUSED[cause]
    assert receiving.post(request).status == 401
    (record,) = told.records
    assert words in record.getMessage()
    fields = vars(record)
    assert (fields["source"], fields["status"], fields["cause"]) == ("shop", 401, cause)
    assert ledger.count("payloads") == 0
    assert "k-test-1" not in told.text


def test_the_log_says_by_how_much_a_clock_is_off(make_receiving: MakeReceiving, told: pytest.LogCaptureFixture) -> None:
    from hookledger.sources import stripe

    source = stripe(secrets="k-test-1")
    receiving = make_receiving(inbox=Inbox(source))
    assert receiving.post(source.signed(COMPACT, 1_700_000_000)).status == 401
    assert "seconds old, 300 are allowed: a clock is off" in told.text


def test_a_flood_becomes_few_lines_and_one_diagnosis_and_no_work_of_the_database(
    make_receiving: MakeReceiving, told: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing listens there: whatever asked the database would be a 503.
    receiving = make_receiving("postgresql+psycopg://nobody@127.0.0.1:1/none")
    monkeypatch.setattr(receiving.intake._preparation, "_diagnosis", LogDiagnosis(seconds_between=3600))
    forged = replace(event("e1"), body=b'{"id": "e1"}')
    answers = receiving.post_all([forged] * 500)
    assert {answer.status for answer in answers} == {401}
    assert len(told.records) == MOST_LINES
    causes = [vars(record)["cause"] for record in told.records]
    assert causes.count("no-match") >= MOST_LINES - 1


def test_a_flood_hides_no_refusal_of_another_source(receiving: Receiving, told: pytest.LogCaptureFixture) -> None:
    receiving.post_all([signed(shop(secrets="another"), COMPACT)] * 50)
    receiving.post(Request("many", "POST", Headers(), b"[]"))
    assert "refused a request to 'many' with 401" in told.records[-1].getMessage()
    assert set(inbox().sources) == {"shop", "many"}
