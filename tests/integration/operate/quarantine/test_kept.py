"""Refused requests are kept within bounds, beside the way of the answer."""

from __future__ import annotations

from concurrent.futures import wait
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from hookledger import Headers, Inbox, Request, SetupError
from hookledger.receive import IntakeSettings, Quarantine
from tests.outcomes import Ledger
from tests.processes import wait_until
from tests.receiving import WAYS, Receiving, event, shop, signed

WRONG = shop(secrets="k-other")


def keeping(url: str, way: str, **bounds: Any) -> Receiving:
    settings = IntakeSettings(quarantine=Quarantine(**bounds), max_body_bytes=10_000)
    return Receiving(way, url, settings=settings, inbox=Inbox(shop()))


def kept(ledger: Ledger) -> list[Any]:
    return list(ledger.execute("SELECT * FROM hookledger.quarantine ORDER BY id"))


def forged(number: int = 0, size: int = 0) -> Request:
    return signed(WRONG, {"id": f"e{number}", "type": "order.paid", "more": "x" * size})


@pytest.mark.parametrize("way", WAYS)
def test_a_bad_signature_is_kept_with_its_diagnosis(ledger: Ledger, database_url: str, way: str) -> None:
    request = forged()
    with keeping(database_url, way) as receiving:
        assert receiving.post(request).status == 401
        assert receiving.post(event("fine")).status == 200
        wait_until(lambda: len(kept(ledger)) == 1)

    (row,) = kept(ledger)
    assert (row.source, row.status, row.reason, row.method) == ("shop", 401, "wrong-secret", "POST")
    assert "no secret of the source matches" in row.diagnosis
    assert bytes(row.body) == request.body
    assert [tuple(pair) for pair in row.headers] == list(request.headers)
    assert row.released_at is None


def test_nothing_is_kept_unless_told_to(ledger: Ledger, database_url: str) -> None:
    with Receiving("threads", database_url, inbox=Inbox(shop())) as receiving:
        assert receiving.post(forged()).status == 401

    assert kept(ledger) == []


def test_of_a_large_body_only_the_size_is_kept(ledger: Ledger, database_url: str) -> None:
    with keeping(database_url, "threads", max_bytes=1000) as receiving:
        assert receiving.post(forged(size=2000)).status == 401
        assert receiving.post(forged(size=20_000)).status == 413
        wait_until(lambda: len(kept(ledger)) == 2)

    forged_one, too_large = kept(ledger)
    assert (bytes(forged_one.body), forged_one.size > 2000) == (b"", True)
    assert (bytes(too_large.body), too_large.reason, too_large.size > 20_000) == (b"", "too-large", True)


def test_a_source_that_is_made_up_is_not_kept(ledger: Ledger, database_url: str) -> None:
    with keeping(database_url, "threads") as receiving:
        assert receiving.post(Request("nobody", "POST", Headers(), b"{}")).status == 404

    assert kept(ledger) == []


def test_a_flood_costs_no_more_rows_than_the_rate(ledger: Ledger, database_url: str) -> None:
    with keeping(database_url, "loop", per_minute=5) as receiving:
        answers = receiving.post_all([forged(number) for number in range(200)])
        wait_until(lambda: len(kept(ledger)) == 5)

    assert {answer.status for answer in answers} == {401}
    assert len(kept(ledger)) == 5


def test_a_full_quarantine_takes_no_more(ledger: Ledger, database_url: str) -> None:
    with keeping(database_url, "threads", most=3) as receiving:
        for number in range(10):
            receiving.post(forged(number))
        wait_until(lambda: len(kept(ledger)) == 3)

    assert len(kept(ledger)) == 3


def test_what_is_over_its_time_goes(ledger: Ledger, database_url: str) -> None:
    ledger.execute(
        "INSERT INTO hookledger.quarantine (at, source, status, reason, method, url, headers, body, size)"
        " SELECT now() - interval '8 days', 'old', 401, 'no-match', 'POST', '', '[]', '', 0"
    )
    with keeping(database_url, "threads", keep=timedelta(days=7)) as receiving:
        receiving.post(forged())
        wait_until(lambda: [row.source for row in kept(ledger)] == ["shop"])


@pytest.mark.parametrize("way", WAYS)
def test_a_refusal_is_answered_while_the_quarantine_is_locked(ledger: Ledger, database_url: str, way: str) -> None:
    with ledger.transaction() as other, keeping(database_url, way) as receiving:
        other.execute(text("LOCK TABLE hookledger.quarantine IN ACCESS EXCLUSIVE MODE"))
        futures = [receiving.start(forged(number)) for number in range(20)]
        done, late = wait(futures, timeout=30)
        assert {future.result().status for future in done} == {401}
        assert not late
        assert receiving.post(event("fine")).status == 200
        wait_until(lambda: _nobody_waits(ledger))

    assert kept(ledger) == []


def _nobody_waits(ledger: Ledger) -> bool:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    return bool(ledger.value(waiting) == 0)


@pytest.mark.parametrize("bounds", [{"max_bytes": -1}, {"per_minute": 0}, {"most": 0}, {"keep": timedelta(0)}])
def test_bounds_that_keep_nothing_are_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match="a quarantine needs"):
        Quarantine(**bounds)
