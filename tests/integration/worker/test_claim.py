"""What a claim takes, in which order, and what it writes for the case that its worker dies (D9, D10)."""

from __future__ import annotations

from sqlalchemy import text

from hookledger import RetryPolicy
from hookledger.ledger.repository import Repository
from tests.outcomes import Ledger, document

REPOSITORY = Repository.of("hookledger")


def test_what_is_locked_is_passed_over_and_not_waited_for(ledger: Ledger) -> None:
    ledger.record(*[document(f"e{number}") for number in range(10)])
    with ledger.transaction() as other, ledger.engine.begin() as connection:
        other.execute(text("SELECT FROM hookledger.pending WHERE delivery_id IN (1, 3, 5) FOR UPDATE"))
        connection.execute(text("SET LOCAL lock_timeout = '1ms'"))
        claimed = REPOSITORY.claim(connection, 4, RetryPolicy())
    assert sorted(row.id for row in claimed) == [2, 4, 6, 7]


def test_two_claims_at_once_share_what_is_due(ledger: Ledger) -> None:
    ledger.record(*[document(f"e{number}") for number in range(10)])
    with ledger.engine.begin() as one, ledger.engine.begin() as other:
        first = REPOSITORY.claim(one, 6, RetryPolicy())
        second = REPOSITORY.claim(other, 6, RetryPolicy())
    assert sorted(row.id for row in first) == [1, 2, 3, 4, 5, 6]
    assert sorted(row.id for row in second) == [7, 8, 9, 10]


def test_the_longest_due_come_first_and_the_future_not_at_all(ledger: Ledger) -> None:
    ledger.record(*[document(f"e{number}") for number in range(6)])
    ledger.execute("UPDATE hookledger.pending SET due_at = now() - delivery_id * interval '1 h'")
    ledger.execute("UPDATE hookledger.pending SET due_at = now() + interval '1 h' WHERE delivery_id = 6")
    with ledger.engine.begin() as connection:
        assert {row.id for row in REPOSITORY.claim(connection, 2, RetryPolicy())} == {5, 4}
        assert {row.id for row in REPOSITORY.claim(connection, 9, RetryPolicy())} == {1, 2, 3}


def test_a_claim_says_what_was_and_writes_what_is_due_if_we_die(ledger: Ledger) -> None:
    """Attempts are counted, but not for one that crashed: it is charged when its turn comes, alone."""
    ledger.record(*[document(f"e{number}") for number in range(3)])
    ledger.execute("UPDATE hookledger.pending SET attempts = 3, last_error = 'before' WHERE delivery_id = 2")
    ledger.execute("UPDATE hookledger.pending SET attempts = 3 WHERE delivery_id = 3")
    with ledger.engine.begin() as connection:
        rows = REPOSITORY.claim(connection, 9, RetryPolicy(first_delay=100, factor=10, jitter=0, longest_delay=1e6))
    found = {row.id: (row.attempts, row.last_error, row.crashed) for row in rows}
    assert found == {1: (1, None, False), 2: (4, "before", False), 3: (3, None, True)}
    pending = ledger.pending()
    assert [row.last_error for row in pending.values()] == [None] * 3
    assert 90 < pending["e0"].due_in <= 100
    assert 99_000 < pending["e1"].due_in <= 100_000
    assert 99_000 < pending["e2"].due_in <= 100_000


def test_even_without_a_delay_a_claim_is_ours_for_a_while(ledger: Ledger) -> None:
    """Else whoever comes between our claim and our hold would take us for crashed."""
    ledger.record(document("e1"))
    policy = RetryPolicy(first_delay=0, longest_delay=0)
    with ledger.engine.begin() as connection:
        REPOSITORY.claim(connection, 9, policy)
    assert ledger.pending()["e1"].due_in > 1
