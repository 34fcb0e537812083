"""A commit that hangs is cut: it stops neither its neighbours nor the receiver, and is not acknowledged (D1)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from hookledger.http import Response
from hookledger.receive import IntakeSettings
from tests.integration.receive.conftest import MakeReceiving
from tests.ledger import Ledger
from tests.processes import wait_until
from tests.proxy import Proxy
from tests.receiving import WAYS, Receiving, event, many, signed

PROMISED_SECONDS = 5.0
"""By the default settings, of which one test makes sure. The others need not wait for as long."""
HASTY = IntakeSettings(answer_within=4.0, cut_after=1.2)


@pytest.fixture
def receiving(make_receiving: MakeReceiving) -> Receiving:
    """A receiver that gives up sooner than the default."""
    return make_receiving(settings=HASTY)


@contextmanager
def holding(url: str, statement: str) -> Iterator[None]:
    """Another connection, with an open transaction that has run the statement."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text(statement))
        yield
        connection.rollback()


def inserting(*event_ids: str) -> str:
    rows = ", ".join(f"('shop', '{event_id}', '', 0, now(), '')" for event_id in event_ids)
    columns = "source, event_id, event_type, payload_id, received_at, body_digest"
    return f"INSERT INTO hookledger.deliveries ({columns}) VALUES {rows}"


def refused(answer: Response) -> bool:
    return answer.status == 503 and any(name == "retry-after" for name, _ in answer.headers)


def backends_at_work(ledger: Ledger) -> int:
    """How many other connections to the database are in a transaction."""
    query = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return len(ledger.run(f"{query} AND xact_start IS NOT NULL"))


def test_an_event_that_another_transaction_inserts_waits_alone(
    receiving: Receiving, database_url: str, ledger: Ledger
) -> None:
    neighbours = [f"e{number}" for number in range(30)]
    requests = [*[event(name) for name in neighbours[:15]], event("held"), *[event(name) for name in neighbours[15:]]]
    with holding(database_url, inserting("held")):
        for _ in range(2):
            began = time.monotonic()
            answers = receiving.post_all(requests)
            assert time.monotonic() - began < PROMISED_SECONDS
            assert [refused(answer) for answer in answers] == [request is requests[15] for request in requests]
            assert {answer.status for answer in answers} == {200, 503}
        assert sorted(ledger.event_ids()) == sorted(neighbours)
    assert receiving.post(requests[15]).status == 200
    assert ledger.delivery("held").body == requests[15].body
    assert ledger.consistent()


def test_many_events_that_hang_do_not_stop_the_receiver(
    receiving: Receiving, database_url: str, ledger: Ledger
) -> None:
    """Twice as many as there are commits under way at a time, one after the other."""
    held = [f"held{number}" for number in range(4)]
    with holding(database_url, inserting(*held)):
        hanging = []
        for name in held:
            hanging.append(receiving.start(event(name)))
            wait_until(lambda: backends_at_work(ledger) >= 2)
        wait_until(lambda: receiving.post(event("e1")).status == 200)
        assert all(refused(answer.result()) for answer in hanging)
    assert {answer.status for answer in receiving.post_all([event(name) for name in held])} == {200}
    assert sorted(ledger.event_ids()) == sorted(["e1", *held])


def test_a_delivery_that_somebody_holds_does_not_stop_its_copies(
    receiving: Receiving, database_url: str, ledger: Ledger
) -> None:
    """Known events are not even touched (D4): nobody waits for rows that others hold."""
    assert receiving.post(event("e1")).status == 200
    with holding(database_url, "SELECT FROM hookledger.deliveries FOR UPDATE"):
        assert {answer.status for answer in receiving.post_all([event("e1"), event("e2"), event("e1")])} == {200}
    assert ledger.count("redeliveries") == 2


def test_what_was_cut_holds_no_lock_and_no_connection(receiving: Receiving, database_url: str, ledger: Ledger) -> None:
    with holding(database_url, inserting("held")):
        assert refused(receiving.post(event("held")))
        wait_until(lambda: backends_at_work(ledger) == 1)


def test_a_dead_letter_that_somebody_holds_stops_only_its_copy(
    receiving: Receiving, database_url: str, ledger: Ledger
) -> None:
    assert [answer.status for answer in receiving.post_all([event("d1"), event("d2")])] == [200, 200]
    ledger.bury("d1")
    ledger.bury("d2")
    lock = "SELECT FROM hookledger.dead_letters d JOIN hookledger.deliveries ON id = delivery_id WHERE event_id = 'd1'"
    with holding(database_url, f"{lock} FOR UPDATE OF d"):
        answers = receiving.post_all([event("d1"), event("d2"), event("e1")])
        assert [answer.status for answer in answers] == [503, 200, 200]
    assert receiving.post(event("d1")).status == 200
    assert sorted(ledger.pending()) == ["d1", "d2", "e1"]
    assert ledger.consistent()


@pytest.mark.parametrize(
    ("way", "settings"),
    [*[(way, HASTY) for way in WAYS], (WAYS[0], None)],
    ids=[*WAYS, "with the default settings"],
)
def test_a_locked_table_is_503_in_time_and_accepted_afterwards(
    make_receiving: MakeReceiving, settings: IntakeSettings | None, database_url: str, ledger: Ledger
) -> None:
    receiving = make_receiving(settings=settings)
    requests = [event(f"e{number}") for number in range(50)]
    with holding(database_url, "LOCK TABLE hookledger.deliveries IN ACCESS EXCLUSIVE MODE"):
        began = time.monotonic()
        assert all(refused(answer) for answer in receiving.post_all(requests))
        assert time.monotonic() - began < PROMISED_SECONDS
    assert {answer.status for answer in receiving.post_all(requests)} == {200}
    assert ledger.count("deliveries") == 50


def test_a_commit_that_succeeds_in_spite_of_being_cut_is_not_acknowledged(receiving: Receiving, ledger: Ledger) -> None:
    """As a server does that waits for its standby: when cancelled it commits, and says so."""
    ledger.run(
        "CREATE FUNCTION wait_for_standby() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; EXCEPTION WHEN query_canceled THEN RETURN NULL; END $$"
    )
    ledger.run(
        "CREATE CONSTRAINT TRIGGER wait_for_standby AFTER INSERT ON deliveries DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW WHEN (NEW.event_id = 'slow') EXECUTE FUNCTION wait_for_standby()"
    )
    assert refused(receiving.post(event("slow")))
    assert wait_until(ledger.event_ids) == ["slow"]
    assert receiving.post(event("slow")).status == 200
    assert ledger.event_ids() == ["slow"]


def test_a_large_commit_may_take_longer_than_a_small_one(make_receiving: MakeReceiving, ledger: Ledger) -> None:
    ledger.run(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NEW; END $$"
    )
    ledger.run(
        "CREATE TRIGGER dawdle BEFORE INSERT ON deliveries FOR EACH ROW"
        " WHEN (NEW.event_id = 'slow') EXECUTE FUNCTION dawdle()"
    )
    receiving = make_receiving(settings=IntakeSettings(cut_after=0.2, answer_within=60))
    assert refused(receiving.post(signed(many(), [{"id": "slow"}])))
    events = [{"id": "slow"}, *[{"id": f"e{number}"} for number in range(5000)]]
    assert receiving.post(signed(many(), events)).status == 200
    assert ledger.count("deliveries") == 5001


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    with Proxy(database_url) as proxy:
        yield proxy


def keep_asking(receiving: Receiving, rounds: int) -> None:
    """Send events while nothing comes back: each is refused in time."""
    for number in range(rounds):
        began = time.monotonic()
        assert all(refused(answer) for answer in receiving.post_all([event(f"lost{number}"), event("lost")]))
        assert time.monotonic() - began < PROMISED_SECONDS


# The loop commits in the same threads as a threaded server, and in tasks with an asynchronous engine.
@pytest.mark.parametrize("way", ["threads", "loop-async"])
@pytest.mark.parametrize(
    ("options", "end"),
    [({}, "resume"), ({}, "replace"), ({}, "forget"), ({"pool_pre_ping": True}, "forget")],
    ids=["resumes", "replaced", "forgets", "forgets-pre-ping"],
)
def test_a_network_that_falls_silent_is_503_in_time_and_survived(
    make_receiving: MakeReceiving, proxy: Proxy, ledger: Ledger, options: dict[str, Any], end: str
) -> None:
    receiving = make_receiving(proxy.url, settings=replace(HASTY, commits=1), **options)
    before = [event(f"before{number}") for number in range(20)]
    assert {answer.status for answer in receiving.post_all(before)} == {200}
    proxy.pause()
    keep_asking(receiving, 2)
    getattr(proxy, end)()
    after = event("after")
    wait_until(lambda: receiving.post(after).status == 200)
    assert {answer.status for answer in receiving.post_all([event("lost"), event("more")])} == {200}
    assert {row.event_id for row in ledger.deliveries()} >= {"before7", "after", "lost", "more"}
    assert ledger.consistent()


def test_a_network_that_is_silent_from_the_start_is_503_in_time_and_survived(
    make_receiving: MakeReceiving, proxy: Proxy, ledger: Ledger
) -> None:
    proxy.pause()
    receiving = make_receiving(proxy.url, settings=HASTY)
    keep_asking(receiving, 2)
    proxy.resume()
    wait_until(lambda: receiving.post(event("after")).status == 200)
    assert "after" in ledger.event_ids()


def test_the_connections_of_the_application_keep_their_own_timeout(
    make_receiving: MakeReceiving, database_url: str
) -> None:
    """Only connections that the receiver asks for are given a bound to connect in."""
    receiving = make_receiving()
    asked = []
    engine = getattr(receiving.engine, "sync_engine", receiving.engine)
    connect = engine.dialect.connect

    def noted(*arguments: Any, **parameters: Any) -> Any:
        asked.append(parameters.get("connect_timeout"))
        return connect(*arguments, **parameters)

    vars(engine.dialect)["connect"] = noted
    assert receiving.post(event("e1")).status == 200
    assert asked
    assert all(asked)
    receiving.start_closing().result()
    del asked[:]
    if receiving.way != "loop-async":
        engine.dispose()
        engine.connect().close()
        assert asked == [None]
