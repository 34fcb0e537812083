"""Refused requests are let in by the same door once they verify, with the time at which they came."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from hookledger import Inbox, Request, Source, stripe
from hookledger.operate.quarantine import Verdict, Wanted, discard, groups, kept, release
from tests.outcomes import Ledger

OLD, NEW = "whsec_b2xk", "whsec_bmV3"
HOUR = timedelta(hours=1)
COLUMNS = "at, source, status, reason, diagnosis, method, url, headers, body, size"
EVERYTHING = Wanted()


def signed(secret: str, id: str, at: datetime, **more: Any) -> Request:
    body = json.dumps({"id": id, "type": "charge.succeeded", "created": 1, "data": {"object": {"id": "ch"}}, **more})
    return stripe(secrets=secret).signed(body.encode(), at.timestamp())


def refuse(ledger: Ledger, request: Request, at: datetime, *, reason: str = "no-match", size: int | None = None) -> int:
    """Keep a request as the receiver does; its number."""
    return int(
        ledger.value(
            f"INSERT INTO hookledger.quarantine ({COLUMNS})"
            " VALUES (:at, 'stripe', 401, :reason, 'why', 'POST', 'https://x/stripe', CAST(:headers AS jsonb), :body,"
            " :size) RETURNING id",
            at=at,
            reason=reason,
            headers=request.headers.to_json(),
            body=request.body if size is None else b"",
            size=len(request.body) if size is None else size,
        )
    )


def let_in(ledger: Ledger, source: Source, wanted: Wanted = EVERYTHING, **options: Any) -> dict[int, Verdict]:
    return {each.id: each.verdict for each in release(ledger.engine, Inbox(source), wanted, **options)}


def then(hours: float = 5) -> datetime:
    return datetime.now(UTC) - hours * HOUR


def test_what_verifies_with_the_mended_secret_comes_in_with_its_time(ledger: Ledger) -> None:
    at = then()
    first = refuse(ledger, signed(NEW, "evt_1", at), at)
    forged = refuse(ledger, signed(OLD, "evt_2", at), at)

    verdicts = let_in(ledger, stripe(secrets=NEW))

    assert verdicts == {first: Verdict.LET_IN, forged: Verdict.REFUSED}
    assert list(ledger.pending()) == ["evt_1"]
    row = ledger.execute(
        "SELECT received_at, origin FROM hookledger.deliveries JOIN hookledger.imported ON id = delivery_id"
    )[0]
    assert (row.received_at, row.origin) == (at, f"quarantine {first}")
    released = ledger.execute("SELECT released_at, delivery_ids FROM hookledger.quarantine ORDER BY id")
    assert (released[0].delivery_ids, released[0].released_at is not None) == ([1], True)
    assert released[1].released_at is None


def test_its_age_counts_from_when_it_came(ledger: Ledger) -> None:
    at = then()
    stale = refuse(ledger, signed(NEW, "stale", at - HOUR), at, reason="clock")

    assert let_in(ledger, stripe(secrets=NEW)) == {stale: Verdict.REFUSED}
    assert let_in(ledger, stripe(secrets=NEW, tolerance=7200)) == {stale: Verdict.LET_IN}


def test_what_the_sender_sent_again_meanwhile_is_known(ledger: Ledger) -> None:
    at = then()
    first = refuse(ledger, signed(NEW, "evt_1", at), at)
    again = refuse(ledger, signed(NEW, "evt_1", at + HOUR), at + HOUR)

    assert let_in(ledger, stripe(secrets=NEW)) == {first: Verdict.LET_IN, again: Verdict.KNOWN}
    assert let_in(ledger, stripe(secrets=NEW)) == {}
    assert ledger.value("SELECT count(*) FROM hookledger.deliveries") == 1
    assert ledger.value("SELECT delivery_ids FROM hookledger.quarantine WHERE id = :id", id=again) == [1]


def test_what_does_not_verify_comes_in_only_by_the_word_for_it(ledger: Ledger) -> None:
    at = then()
    forged = refuse(ledger, signed(OLD, "evt_2", at), at)

    assert let_in(ledger, stripe(secrets=NEW), unverified=True) == {forged: Verdict.LET_IN}
    assert ledger.value("SELECT origin FROM hookledger.imported") == f"quarantine {forged}, not verified"


def test_of_one_whose_body_was_not_kept_nothing_can_come_in(ledger: Ledger) -> None:
    at = then()
    head = refuse(ledger, signed(NEW, "evt_1", at), at, size=100_000)

    assert let_in(ledger, stripe(secrets=NEW), unverified=True) == {head: Verdict.HEAD_ONLY}
    assert ledger.value("SELECT count(*) FROM hookledger.deliveries") == 0


def test_a_dry_run_says_it_and_changes_nothing(ledger: Ledger) -> None:
    at = then()
    first = refuse(ledger, signed(NEW, "evt_1", at), at)

    assert let_in(ledger, stripe(secrets=NEW), dry_run=True) == {first: Verdict.LET_IN}
    assert ledger.value("SELECT count(*) FROM hookledger.deliveries") == 0
    assert ledger.value("SELECT count(*) FROM hookledger.quarantine WHERE released_at IS NOT NULL") == 0


def test_filters_choose(ledger: Ledger) -> None:
    early, late = then(10), then(1)
    first = refuse(ledger, signed(NEW, "evt_1", early), early)
    second = refuse(ledger, signed(NEW, "evt_2", late), late, reason="clock")

    def ids(**wanted: Any) -> list[int]:
        with ledger.engine.connect() as connection:
            return [each.id for each in kept(connection, "hookledger", Wanted(**wanted))]

    assert ids() == [second, first]
    assert ids(reason="clock") == [second]
    assert ids(since=then(5)) == [second]
    assert ids(until=then(5)) == [first]
    assert ids(ids=(first,)) == [first]
    assert ids(source="shop") == []
    with ledger.engine.connect() as connection:
        assert [(each.reason, each.count, each.example) for each in groups(connection, "hookledger", Wanted())] == [
            ("clock", 1, second),
            ("no-match", 1, first),
        ]
    assert discard(ledger.engine, "hookledger", Wanted(reason="clock")) == 1
    assert ids() == [first]


def test_two_who_let_in_the_same_do_it_once(ledger: Ledger) -> None:
    at = then()
    first = refuse(ledger, signed(NEW, "evt_1", at), at)
    going = release(ledger.engine, Inbox(stripe(secrets=NEW)), Wanted())
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE hookledger.quarantine SET released_at = now()"))

    assert [each.id for each in going] == []
    assert first == 1
    assert ledger.value("SELECT count(*) FROM hookledger.deliveries") == 0
