"""Dead snapshots that a newer one has made needless are closed by the worker itself (D7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError

from hookledger import Delivery, Inbox, Reject
from hookledger.ledger.repository import Repository
from hookledger.operate.retention import brief
from hookledger.worker import Settled
from hookledger.worker.heal import CHUNK, EVERY, Heal
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop
from tests.processes import wait_until
from tests.ways import Way

Work = Callable[..., None]


def state_of(delivery: Delivery, _: Connection) -> Any:
    if delivery.data.get("fails"):
        raise Reject("it cannot be done")
    return {"status": delivery.data["status"]}


def saving(way: Way, **options: Any) -> Inbox:
    """An inbox whose snapshot handler `save` gives up on documents that say so."""
    inbox = inbox_of_shop()
    inbox.snapshot(SHOP, "thing.*", name="save", **options)(way.handler(state_of))
    return inbox


def die(ledger: Ledger, work: Work, inbox: Inbox, *events: tuple[str, str, int]) -> None:
    """Make dead letters of events (id, resource, version)."""
    ledger.record(*[document(id, resource, version, status=0, fails=True) for id, resource, version in events])
    work(inbox)
    assert set(ledger.dead()) >= {id for id, _, _ in events}


def test_a_dead_snapshot_is_closed_once_a_newer_one_was_applied(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = saving(way)
    die(ledger, work, inbox, ("e1", "r1", 1), ("e9", "r1", 9), ("other", "r2", 1))
    ledger.record(document("e2", "r1", 2, status=2))
    work(inbox)
    told: list[Settled] = []
    work(inbox, observe=told.append)
    assert set(ledger.dead()) == {"e9", "other"}, "those have nothing newer"
    assert ledger.outcomes_of("save") == {"e1": "superseded", "e2": "applied"}
    assert [(one.event_id, one.outcome) for one in told] == [("e1", "superseded")]
    assert ledger.states("save")["r1"].state == {"status": 2}
    ledger.check()


def test_of_equal_versions_the_later_arrival_closes_the_earlier(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = saving(way)
    die(ledger, work, inbox, ("e1", "r1", 5))
    ledger.record(document("e2", "r1", 5, status=5))
    work(inbox)
    die(ledger, work, inbox, ("e3", "r1", 5))
    work(inbox)
    assert set(ledger.dead()) == {"e3"}
    assert ledger.outcomes_of("save") == {"e1": "superseded", "e2": "applied"}


def test_a_dead_one_that_others_wait_for_is_left_alone(way: Way, work: Work, ledger: Ledger) -> None:
    """Its accumulate handler has not run, and it does not hold up other deliveries."""

    def add(delivery: Delivery, _: Connection) -> Any:
        if delivery.data.get("fails"):
            raise Reject("not this one")
        return {"total": 1}

    inbox = saving(way)
    inbox.accumulate(SHOP, "thing.*", name="add")(way.handler(add))
    die(ledger, work, inbox, ("e1", "r1", 1))
    ledger.record(document("e2", "r1", 2, status=2))
    work(inbox)
    work(inbox)
    assert set(ledger.dead()) == {"e1"}
    assert ledger.outcomes() == {("e2", "save"): "applied", ("e2", "add"): "applied"}


@pytest.mark.parametrize("own", ["version", "resource"])
def test_what_a_handler_orders_by_itself_is_read_from_the_body(own: str, way: Way, work: Work, ledger: Ledger) -> None:
    read = {"version": lambda delivery: delivery.data["sequence"], "resource": lambda delivery: delivery.data["key"]}
    inbox = saving(way, **{own: read[own]})
    ledger.record(
        document("e1", "a", 1, status=1, fails=True, sequence=1, key="a"),
        document("e7", "a", 7, status=1, fails=True, sequence=7, key="a"),
    )
    work(inbox)
    ledger.record(document("e2", "a", 2, status=2, sequence=2, key="a"))
    work(inbox)
    work(inbox)
    assert set(ledger.dead()) == {"e7"}
    assert ledger.outcomes_of("save") == {"e1": "superseded", "e2": "applied"}


def test_more_than_one_look_takes(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = saving(way)
    many = CHUNK + 20
    die(ledger, work, inbox, *[(f"e{number}", f"r{number % 3}", number) for number in range(many)])
    ledger.record(*[document(f"new-{number}", f"r{number}", many + number, status=1) for number in range(3)])
    work(inbox)
    work(inbox)
    assert ledger.dead() == {}
    assert list(ledger.outcomes_of("save").values()).count("superseded") == many
    ledger.check()


def test_a_worker_that_is_stopped_while_it_closes_lets_go(
    way: Way, work: Work, ledger: Ledger, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay of the dead letters must not wait until somebody wakes it."""
    inbox = saving(way)
    die(ledger, work, inbox, ("e1", "r1", 1))
    ledger.record(document("e2", "r1", 2, status=2))
    work(inbox)
    monkeypatch.setattr(brief, "LONGEST_SILENCE", "200ms")

    def be_stopped(connection: Connection, _: Any, statement: str, *__: Any) -> None:
        if "DELETE FROM" in statement:
            driver: Any = connection.connection.driver_connection
            query = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {driver.info.backend_pid}"
            wait_until(lambda: not ledger.value(query), deadline_seconds=20)

    heal = Heal(inbox, Repository.of("hookledger"))
    event.listen(engine, "after_cursor_execute", be_stopped)
    with engine.connect() as connection, pytest.raises(DBAPIError, match="idle-in-transaction"):
        heal.look(connection, 0.0)
    event.remove(engine, "after_cursor_execute", be_stopped)
    assert set(ledger.dead()) == {"e1"}
    with engine.connect() as connection:
        assert [one.event_id for one in heal.look(connection, EVERY)] == ["e1"]
    assert ledger.dead() == {}
