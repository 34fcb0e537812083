"""Dead letters in groups, few and very many (B072)."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, Select, text

from hookledger.ledger.schema import tables
from hookledger.operate.dead import COUNTED, groups, read_groups
from hookledger.operate.filters import Filter, State
from hookledger.operate.find import PAGE, find, ids_of, page
from tests.outcomes import Ledger

SCHEMA = "hookledger"
DEAD, SETTLED = 200_000, 1_000_000


def bury(ledger: Ledger, first: int, last: int, reason: str, mark: str, *, source: str = "shop") -> None:
    """Generate dead deliveries with ids from `first` to `last`; the higher the id, the later it died."""
    ledger.execute(
        "INSERT INTO hookledger.deliveries (id, source, event_id, event_type, payload_id, received_at, body_digest) "
        "OVERRIDING SYSTEM VALUE SELECT i, :source, 'd' || i, 'order.paid', i, now(), '' "
        "FROM generate_series(CAST(:first AS int), :last) AS i",
        source=source,
        first=first,
        last=last,
    )
    ledger.execute(
        "INSERT INTO hookledger.dead_letters (delivery_id, died_at, attempts, reason, error, fingerprint) "
        "SELECT i, '2031-01-01+00'::timestamptz + i * interval '1 s', 12, :reason, 'ValueError: ' || :mark, :mark "
        "FROM generate_series(CAST(:first AS int), :last) AS i",
        reason=reason,
        mark=mark,
        first=first,
        last=last,
    )


def test_groups_have_counts_ends_and_an_example(ledger: Ledger, operator: Engine) -> None:
    with operator.connect() as connection:
        assert read_groups(connection, SCHEMA).groups == ()
    bury(ledger, 1, 3, "failed", "aa")
    bury(ledger, 4, 4, "rejected", "aa")
    bury(ledger, 5, 6, "failed", "bb", source="other-shop")
    bury(ledger, 7, 7, "failed", "aa")
    with operator.connect() as connection:
        found = read_groups(connection, SCHEMA)
        assert [(each.reason, each.fingerprint, each.count, each.example) for each in found.groups] == [
            ("failed", "aa", 4, 7),
            ("failed", "bb", 2, 6),
            ("rejected", "aa", 1, 4),
        ]
        first = found.groups[0]
        assert (first.first_at.second, first.last_at.second) == (1, 7)
        assert (first.source, first.event_type, first.error) == ("shop", "order.paid", "ValueError: aa")
        assert (found.in_all, found.is_bounded, first.is_bounded) == (3, False, False)
        assert len(read_groups(connection, SCHEMA, limit=1).groups) == 1
        of_one = read_groups(connection, SCHEMA, Filter(source="other-shop"))
        assert [(each.fingerprint, each.count) for each in of_one.groups] == [("bb", 2)]
        assert read_groups(connection, SCHEMA, Filter(state=State.SETTLED)).groups == ()


@pytest.fixture
def large(ledger: Ledger) -> Ledger:
    """A ledger with 200,000 dead letters of three errors, and 1,000,000 settled deliveries around them."""
    # The key of the events is not looked at here, and takes most of the time.
    ledger.execute("ALTER TABLE hookledger.deliveries DROP CONSTRAINT deliveries_source_event_id_key")
    ledger.execute(
        "INSERT INTO hookledger.deliveries (id, source, event_id, event_type, payload_id, received_at, body_digest) "
        "OVERRIDING SYSTEM VALUE SELECT i, 'shop', 'e' || i, 'order.paid', i, now(), '' "
        f"FROM generate_series({DEAD + 1}, {DEAD + SETTLED}) AS i"
    )
    bury(ledger, 1, DEAD - COUNTED - 1, "failed", "aa")
    bury(ledger, DEAD - COUNTED, DEAD - 1, "failed", "bb")
    bury(ledger, DEAD, DEAD, "unreadable", "cc")
    ledger.execute("ANALYZE hookledger.deliveries, hookledger.dead_letters, hookledger.pending")
    return ledger


def plan_of(operator: Engine, statement: Select[object]) -> str:
    with operator.connect() as connection:
        compiled = statement.compile(connection, compile_kwargs={"literal_binds": True})
        return "\n".join(connection.execute(text(f"EXPLAIN {compiled}")).scalars())


def test_b072_a_ledger_with_very_many_dead_letters_is_read_through_its_indexes(large: Ledger, operator: Engine) -> None:
    t = tables(SCHEMA)
    with operator.connect() as connection:
        found = read_groups(connection, SCHEMA)
        assert {each.fingerprint: (each.count, each.is_bounded) for each in found.groups} == {
            "aa": (COUNTED, True),
            "bb": (COUNTED, False),
            "cc": (1, False),
        }
        # The first page of a rare state, the second, and the last one.
        dead = Filter(state=State.DEAD)
        first = find(connection, SCHEMA, dead)
        assert [each.id for each in first.deliveries] == list(range(DEAD, DEAD - PAGE, -1))
        assert first.before is not None
        assert find(connection, SCHEMA, dead, before=first.before).deliveries[0].id == first.before - 1
        last = find(connection, SCHEMA, dead, before=10)
        assert (len(last.deliveries), last.before) == (9, None)
    for statement in (
        groups(t),
        ids_of(t, Filter(state=State.DEAD), None, PAGE + 1),
        ids_of(t, Filter(state=State.DEAD), DEAD - PAGE, PAGE + 1),
        ids_of(t, Filter(state=State.DEAD, fingerprint="cc"), None, PAGE + 1),
        ids_of(t, Filter(state=State.PENDING), None, PAGE + 1),
        page(t, Filter(), 1000, PAGE + 1),
    ):
        plan = plan_of(operator, statement)
        assert "Seq Scan on deliveries" not in plan, plan
        assert "Seq Scan on dead_letters" not in plan, plan
    assert "Index Only Scan" in plan_of(operator, groups(t))
