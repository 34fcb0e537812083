"""Whatever the order, the repeats and the interleaving: the end is a function of the set of events (D7)."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, text

from hookledger import Delivery, Inbox
from hookledger.receive import Intake
from hookledger.worker import Worker, WorkerSettings
from tests.outcomes import SHOP, Ledger, inbox_of_shop
from tests.processes import wait_until
from tests.receiving import signed
from tests.ways import WAYS, Way

EXAMPLES = 15
RESOURCES = ["r0", "r1", "r2"]
VERSIONS = [9, 10, 999, 1000]
SENDERS = 3

TABLES = (
    "CREATE TABLE mirror (resource text PRIMARY KEY, value integer NOT NULL)",
    "CREATE TABLE sums (resource text PRIMARY KEY, total bigint NOT NULL, events integer NOT NULL)",
)
_FORGET = text("DELETE FROM mirror WHERE resource = :resource")
_SAVE = text(
    "INSERT INTO mirror VALUES (:resource, :value) ON CONFLICT (resource) DO UPDATE SET value = excluded.value"
)
_ADD = text(
    "INSERT INTO sums VALUES (:resource, :value, 1)"
    " ON CONFLICT (resource) DO UPDATE SET total = sums.total + excluded.total, events = sums.events + 1"
)


@dataclass(frozen=True)
class Fact:
    """One event.

    Args:
        kind: snapshot, or added.
        deleted: the snapshot says that the resource is gone.
        fails_once: the first attempt at it fails.
    """

    kind: str
    resource: str
    version: int
    value: int
    deleted: bool
    fails_once: bool


facts = st.builds(
    Fact,
    kind=st.sampled_from(["snapshot", "snapshot", "added"]),
    resource=st.sampled_from(RESOURCES),
    version=st.sampled_from(VERSIONS),
    value=st.integers(0, 1000),
    deleted=st.sampled_from([False, False, False, True]),
    fails_once=st.sampled_from([False, False, False, False, True]),
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Fact], list[int]]:
    """Events, and the order in which they are sent: each once at least, in any order, some again."""
    events = draw(st.lists(facts, min_size=5, max_size=40))
    numbers = list(range(len(events)))
    again = draw(st.lists(st.sampled_from(numbers), max_size=len(events)))
    return events, draw(st.permutations([*numbers, *again]))


def fail_once(delivery: Delivery) -> None:
    if delivery.data["fails_once"] and delivery.attempt == 1:
        raise RuntimeError("not at the first attempt")


def save(delivery: Delivery, tx: Connection) -> dict[str, int] | None:
    """Keep a copy of the resource."""
    value = delivery.data["value"]
    if delivery.data["deleted"]:
        tx.execute(_FORGET, {"resource": delivery.resource})
    else:
        tx.execute(_SAVE, {"resource": delivery.resource, "value": value})
    fail_once(delivery)
    return {"value": value}


def total(delivery: Delivery, tx: Connection) -> dict[str, int]:
    """Keep a sum of one's own, and one in the state."""
    tx.execute(_ADD, {"resource": delivery.resource, "value": delivery.data["value"]})
    fail_once(delivery)
    return {"total": delivery.data["value"], "events": 1}


def inbox_of(way: Way) -> Inbox:
    """The inbox of one worker."""
    inbox = inbox_of_shop(first_delay=0)
    gone = lambda delivery: bool(delivery.data["deleted"])  # noqa: E731
    inbox.snapshot(SHOP, "snapshot", name="save", deleted=gone)(way.handler(save))
    inbox.accumulate(SHOP, "*", name="total")(way.handler(total))
    return inbox


@contextmanager
def working(way: Way, url: str) -> Iterator[None]:
    """A worker in a thread, with a loop and an engine of its own."""
    ready: list[Callable[[], None]] = []
    failed: list[BaseException] = []

    async def run() -> None:
        engine = way.engine(url, 2)
        worker = Worker(inbox_of(way), engine, WorkerSettings(slots=2, batch=5, longest_poll=0.1))
        ready.append(worker.stop)
        try:
            await worker.run()
        finally:
            disposed = engine.dispose()
            if inspect.isawaitable(disposed):
                await disposed

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: ready or failed)
        yield
    finally:
        for stop in ready:
            stop()
        thread.join()
    assert failed == []


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """A ledger, and the tables that the handlers write."""
    ledger = Ledger(database_url)
    for table in TABLES:
        ledger.execute(table)
    yield ledger
    ledger.engine.dispose()


def send_all(intake: Intake, name: str, events: list[Fact], order: list[int]) -> None:
    """Send from several threads, each as fast as it can."""

    def send(number: int) -> int:
        fact = events[number]
        fields = {"value": fact.value, "deleted": fact.deleted, "fails_once": fact.fails_once}
        event = {"id": f"{name}-{number}", "type": fact.kind, "resource": f"{name}-{fact.resource}", **fields}
        request = signed(intake.inbox.source(SHOP), {**event, "version": fact.version})
        return intake.receive_blocking(request).status

    with ThreadPoolExecutor(SENDERS) as threads:
        assert set(threads.map(send, order)) == {200}


def expect_model(ledger: Ledger, name: str, events: list[Fact]) -> None:
    """Compare with what is computed from the events and the order of their ids alone."""
    rows = ledger.execute("SELECT id, event_id FROM hookledger.deliveries WHERE event_id LIKE :name", name=f"{name}-%")
    ids = {int(row.event_id.rpartition("-")[2]): int(row.id) for row in rows}
    assert sorted(ids) == list(range(len(events)))
    saved: dict[str, Any] = {}
    mirror: dict[str, int] = {}
    sums: dict[str, tuple[int, int]] = {}
    winners: set[str] = set()
    for resource in RESOURCES:
        full = f"{name}-{resource}"
        of_resource = [number for number, fact in enumerate(events) if fact.resource == resource]
        snapshots = [number for number in of_resource if events[number].kind == "snapshot"]
        if snapshots:
            winner = max(snapshots, key=lambda number: (events[number].version, ids[number]))
            fact = events[winner]
            winners.add(f"{name}-{winner}")
            state = None if fact.deleted else {"value": Decimal(fact.value)}
            saved[full] = ((Decimal(fact.version),), fact.deleted, state, ids[winner])
            if not fact.deleted:
                mirror[full] = fact.value
        if of_resource:
            sums[full] = (sum(events[number].value for number in of_resource), len(of_resource))
    assert {row.resource: row.value for row in own(ledger, "mirror", name)} == mirror
    assert {row.resource: (row.total, row.events) for row in own(ledger, "sums", name)} == sums
    watermarks = {row.resource: row.delivery_id for row in own(ledger, "hookledger.resource_state", name, "save")}
    states = {resource: state for resource, state in ledger.states("save").items() if resource in watermarks}
    assert {resource: (*state, watermarks[resource]) for resource, state in states.items()} == saved
    totals = {resource: state.state for resource, state in ledger.states("total").items() if resource in sums}
    assert totals == {resource: {"total": total, "events": events} for resource, (total, events) in sums.items()}
    outcomes = {event: outcome for event, outcome in ledger.outcomes().items() if event[0].startswith(f"{name}-")}
    all_events = {f"{name}-{number}" for number in range(len(events))}
    assert {event for event, handler in outcomes if handler == "total"} == all_events
    assert {outcomes[event, "total"] for event in all_events} == {"applied"}
    of_save = {event: outcome for (event, handler), outcome in outcomes.items() if handler == "save"}
    assert set(of_save) == {f"{name}-{number}" for number, fact in enumerate(events) if fact.kind == "snapshot"}
    assert set(of_save.values()) <= {"applied", "stale", "superseded"}
    assert {of_save[event] for event in winners} <= {"applied"}


def own(ledger: Ledger, table: str, name: str, handler: str | None = None) -> Any:
    """The rows of one example."""
    condition = "" if handler is None else f"AND handler = '{handler}'"
    return ledger.execute(f"SELECT * FROM {table} WHERE resource LIKE :name {condition}", name=f"{name}-%")


def test_any_history_ends_in_the_same_state(ledger: Ledger, engine: Engine, database_url: str) -> None:
    """Three workers, one of each kind, work all the time; each example has events and resources of its own."""
    numbers = itertools.count()
    intake = Intake(Inbox(inbox_of_shop().source(SHOP)), engine)

    # Not made smaller after a failure: how workers interleave does not repeat, and that would take minutes.
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(histories())
    def run(history: tuple[list[Fact], list[int]]) -> None:
        events, order = history
        name = f"x{next(numbers)}"
        send_all(intake, name, events, order)
        wait_until(lambda: not ledger.pending())
        assert ledger.dead() == {}
        expect_model(ledger, name, events)

    with ExitStack() as stack:
        for way in WAYS:
            stack.enter_context(working(way, database_url))
        run()
    intake.close()
    ledger.check()
