"""Steps between revisions on a ledger that holds deliveries: nothing of them changes (D13)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from hookledger import migrate
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import Buried, NewEvent, NewRequest
from hookledger.retry import RetryPolicy
from tests.ledger import Ledger
from tests.migrations.test_schema import assert_golden

SCHEMA = "My-Hooks"
KEPT = ("payloads", "deliveries", "pending", "dead_letters", "failures", "effects", "resource_state", "redeliveries")
ADDED = {"parked"}
"""Columns that not every revision has."""


def fill(engine: Engine) -> None:
    """Three deliveries: one pending, one dead, one settled."""
    repository = Repository.of(SCHEMA)
    events = [
        NewEvent(1, "shop", f"event {n}", "order.paid", f"order {n}" if n else None, "{1}", 0, b"digest", None)
        for n in range(3)
    ]
    with engine.begin() as connection:
        repository.record(connection, [NewRequest("[]", b"{}")], events)
    ledger = Ledger(engine.url, SCHEMA)
    ledger.bury("event 1")
    ledger.settle("event 2")


def held(connection: Connection) -> dict[str, list[Any]]:
    return {
        name: sorted(
            str(tuple(row._mapping[key] for key in row._mapping if key not in ADDED))
            for row in connection.execute(text(f'SELECT * FROM "{SCHEMA}".{name}'))
        )
        for name in KEPT
    }


@pytest.mark.parametrize("start", migrate.revisions()[:-1])
def test_an_upgrade_from_an_older_revision_and_back_keeps_every_row(
    empty_engine: Engine, start: str, tmp_path: Path
) -> None:
    migrate.upgrade(empty_engine, schema=SCHEMA, revision=start)
    fill(empty_engine)
    with empty_engine.connect() as connection:
        before = held(connection)
    assert all(before[name] for name in ("payloads", "deliveries", "pending", "dead_letters", "effects"))
    migrate.upgrade(empty_engine, schema=SCHEMA)
    assert_golden(empty_engine, SCHEMA, tmp_path)
    migrate.check(empty_engine, SCHEMA)
    with empty_engine.connect() as connection:
        assert held(connection) == before
    migrate.downgrade(empty_engine, schema=SCHEMA, revision=start)
    with empty_engine.connect() as connection:
        assert held(connection) == before
    migrate.upgrade(empty_engine, schema=SCHEMA)
    migrate.check(empty_engine, SCHEMA)


def test_the_worker_goes_on_where_it_was_before_the_upgrade(empty_engine: Engine) -> None:
    migrate.upgrade(empty_engine, schema=SCHEMA, revision=migrate.revisions()[-2])
    fill(empty_engine)
    migrate.upgrade(empty_engine, schema=SCHEMA)
    repository = Repository.of(SCHEMA)
    with empty_engine.begin() as connection:
        claimed = repository.claim(connection, 10, RetryPolicy(first_delay=0, longest_delay=0))
        assert [row.event_id for row in claimed] == ["event 0"]
        repository.hold(connection, [(row.id, row.attempts) for row in claimed])
        repository.bury(connection, [Buried(claimed[0].id, 1, "failed", "it never worked", "f")])
    assert {dead.event_id for dead in Ledger(empty_engine.url, SCHEMA).dead()} == {"event 0", "event 1"}
