"""Whatever engine, role and pool the application has, what is acknowledged is committed as a whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import AssertionPool, NullPool, StaticPool

from hookledger import migrate
from hookledger.errors import SetupError
from hookledger.inbox import Inbox
from hookledger.receive import Intake, IntakeSettings
from tests.integration.receive.conftest import MakeReceiving
from tests.ledger import Ledger
from tests.processes import wait_until
from tests.receiving import Receiving, event, inbox, many, shop, signed

PROMISED_SECONDS = 5.0
LEVELS = ["AUTOCOMMIT", "REPEATABLE READ", "SERIALIZABLE", "READ UNCOMMITTED"]


def use(receiving: Receiving) -> None:
    """Send what takes both statements: a batch with a copy and a new event."""
    assert receiving.post(signed(many(), [{"id": "e1"}])).status == 200
    assert receiving.post(signed(many(), [{"id": "e1"}, {"id": "e2"}])).status == 200
    requests = [event(f"e{number % 20}") for number in range(100)]
    assert {answer.status for answer in receiving.post_all(requests)} == {200}


def note_isolation(ledger: Ledger) -> None:
    """Have the database note in which isolation level, and in which transaction, it is written to."""
    ledger.run("CREATE TABLE noted AS SELECT '' AS level, pg_current_xact_id() AS transaction, '' AS tables LIMIT 0")
    ledger.run(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO hookledger.noted"
        " VALUES (current_setting('transaction_isolation'), pg_current_xact_id(), TG_TABLE_NAME); RETURN NEW; END $$"
    )
    for table in ("deliveries", "redeliveries"):
        ledger.run(f"CREATE TRIGGER note BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION note()")


@pytest.mark.parametrize("level", LEVELS)
def test_a_request_is_one_transaction_in_read_committed_whatever_the_engine_says(
    make_receiving: MakeReceiving, ledger: Ledger, level: str
) -> None:
    note_isolation(ledger)
    receiving = make_receiving(isolation_level=level)
    use(receiving)
    assert [row.level for row in ledger.run("SELECT DISTINCT level FROM noted")] == ["read committed"]
    both = ledger.run("SELECT FROM noted GROUP BY transaction HAVING count(DISTINCT tables) = 2")
    assert both, "the copy and the new event of a batch are written in one transaction"
    assert ledger.consistent()


def test_the_role_s_isolation_level_does_not_matter(make_receiving: MakeReceiving, ledger: Ledger) -> None:
    note_isolation(ledger)
    database = ledger.url.database
    ledger.run(f'ALTER DATABASE "{database}" SET default_transaction_isolation = "serializable"')
    use(make_receiving())
    assert [row.level for row in ledger.run("SELECT DISTINCT level FROM noted")] == ["read committed"]


def test_the_application_gets_its_connections_back_as_they_were(database_url: str) -> None:
    engine = create_engine(database_url, isolation_level="AUTOCOMMIT", pool_size=1, max_overflow=0)
    intake = Intake(inbox(), engine)
    assert intake.receive_blocking(event("e1")).status == 200
    intake.close()
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        assert driver.autocommit
        assert connection.execute(text("SHOW lock_timeout")).scalar() == "0"
    engine.dispose()


@pytest.mark.parametrize(
    "setting", ["statement_timeout = 40", "lock_timeout = 1", "idle_in_transaction_session_timeout = 2000"]
)
def test_short_timeouts_of_the_role_cost_no_event(make_receiving: MakeReceiving, ledger: Ledger, setting: str) -> None:
    """A role's timeout is for its other statements; a commit that meets it is tried in smaller pieces."""
    database = ledger.url.database
    ledger.run(f'ALTER DATABASE "{database}" SET {setting}')
    ledger.run(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(0.06); RETURN NEW; END $$"
    )
    ledger.run(
        "CREATE TRIGGER dawdle BEFORE INSERT ON deliveries FOR EACH ROW"
        " WHEN (NEW.event_id LIKE 'slow%') EXECUTE FUNCTION dawdle()"
    )
    receiving = make_receiving()
    assert {answer.status for answer in receiving.post_all([event(f"e{number}") for number in range(50)])} == {200}
    assert {answer.status for answer in receiving.post_all([event(f"slow{number}") for number in range(5)])} == {200}
    assert receiving.post(event("slow1")).status == 200
    assert ledger.count("deliveries") == 55
    assert ledger.consistent()


@pytest.mark.parametrize(
    "options",
    [
        {"pool_size": 1, "max_overflow": 0, "pool_timeout": 3},
        {"poolclass": NullPool},
        {"pool_pre_ping": True, "pool_recycle": 0},
        {"pool_use_lifo": True, "pool_reset_on_return": None},
    ],
    ids=["one", "none", "recycled", "without reset"],
)
def test_any_pool_will_do(make_receiving: MakeReceiving, ledger: Ledger, options: dict[str, Any]) -> None:
    receiving = make_receiving(**options)
    use(receiving)
    assert ledger.consistent()
    assert ledger.count("deliveries") == 22


def test_a_pool_that_shares_one_connection_is_refused(database_url: str) -> None:
    engine = create_engine(database_url, poolclass=StaticPool)
    with pytest.raises(SetupError, match="StaticPool"):
        Intake(inbox(), engine)


def test_a_pool_that_fails_in_its_own_way_costs_503_and_no_thread(database_url: str, ledger: Ledger) -> None:
    """AssertionPool raises as soon as a second connection is asked for."""
    engine = create_engine(database_url, poolclass=AssertionPool)
    with Receiving("threads", database_url) as receiving:
        receiving.intake = Intake(inbox(), engine)
        taken = engine.connect()
        assert [answer.status for answer in receiving.post_all([event(f"e{n}") for n in range(4)])] == [503] * 4
        taken.close()
        assert receiving.post(event("e0")).status == 200
    engine.dispose()
    assert ledger.event_ids() == ["e0"]


@pytest.fixture
def small(database_url: str) -> Iterator[Engine]:
    engine = create_engine(database_url, pool_size=2, max_overflow=0)
    yield engine
    engine.dispose()


def test_b046_a_pool_that_the_application_has_emptied_is_503_in_time(small: Engine, ledger: Ledger) -> None:
    with Receiving("threads", ledger.url.render_as_string(hide_password=False)) as receiving:
        receiving.intake = Intake(inbox(), small)
        taken = [small.connect(), small.connect()]
        requests = [event(f"e{number}") for number in range(50)]
        began = time.monotonic()
        answers = receiving.post_all(requests)
        assert time.monotonic() - began < PROMISED_SECONDS
        assert {answer.status for answer in answers} == {503}
        assert all("retry-after" in dict(answer.headers) for answer in answers)
        for connection in taken:
            connection.close()
        assert {answer.status for answer in receiving.post_all(requests)} == {200}
    assert ledger.count("deliveries") == 50


def test_b046_a_burst_on_slow_commits_is_answered_in_time(make_receiving: MakeReceiving, ledger: Ledger) -> None:
    ledger.run(
        "CREATE FUNCTION slow_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF current_setting('hooks.slept', true) IS DISTINCT FROM pg_current_xact_id()::text THEN"
        " PERFORM set_config('hooks.slept', pg_current_xact_id()::text, true), pg_sleep(0.1); END IF; RETURN NULL;"
        " END $$"
    )
    ledger.run(
        "CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON deliveries DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION slow_commit()"
    )
    receiving = make_receiving(pool_size=5, max_overflow=10)
    requests = [event(f"e{number}") for number in range(200)]
    began = time.monotonic()
    answers = receiving.post_all(requests)
    assert time.monotonic() - began < PROMISED_SECONDS
    assert {answer.status for answer in answers} <= {200, 503}
    assert all(answer.status == 200 or "retry-after" in dict(answer.headers) for answer in answers)
    stored = set(ledger.event_ids())
    acknowledged = {f"e{number}" for number, answer in enumerate(answers) if answer.status == 200}
    assert acknowledged
    assert acknowledged <= stored


@pytest.mark.parametrize("start", [2147483640, 9007199254740993])
def test_b049_ids_beyond_32_and_53_bits(receiving: Receiving, ledger: Ledger, start: int) -> None:
    for sequence in ("payloads", "deliveries", "redeliveries"):
        ledger.run(f"SELECT setval('{sequence}_id_seq', {start}, false)")
    requests = [event(f"e{number}") for number in range(20)]
    for request in requests:
        assert receiving.post(request).status == 200
    for number in range(10):
        ledger.bury(f"e{number}")
    assert {answer.status for answer in receiving.post_all(requests)} == {200}
    assert [receiving.post(event(f"e{number}", other=1)).status for number in range(20)] == [200] * 20
    assert [row.id for row in ledger.deliveries()] == list(range(start, start + 20))
    assert len(ledger.pending()) == 20
    assert [copy.differs for copy in ledger.redeliveries()] == [False] * 20 + [True] * 20
    assert ledger.consistent()


@pytest.mark.parametrize("schema", ["My-Hooks", '100% "odd" it\'s :a %s', "ünï"])
def test_a_schema_of_any_name(way: str, empty_database_url: str, schema: str) -> None:
    engine = create_engine(empty_database_url)
    migrate.upgrade(engine, schema=schema)
    engine.dispose()
    ledger = Ledger(empty_database_url, schema)
    with Receiving(way, empty_database_url, inbox=Inbox(shop(), many(), schema=schema)) as receiving:
        use(receiving)
    assert ledger.consistent()
    assert ledger.count("deliveries") == 22


def test_a_search_path_that_leads_elsewhere(make_receiving: MakeReceiving, ledger: Ledger) -> None:
    ledger.run("CREATE SCHEMA elsewhere")
    for table in ("payloads", "deliveries", "pending"):
        ledger.run(f"CREATE TABLE elsewhere.{table} (id int)")
    use(make_receiving(connect_args={"options": "-c search_path=elsewhere"}))
    assert ledger.count("deliveries") == 22


def dawdle(ledger: Ledger, trigger: str) -> None:
    """Have the database take its time for every row, so that transactions overlap."""
    ledger.run(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(0.001); IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$"
    )
    ledger.run(f"CREATE TRIGGER dawdle {trigger} FOR EACH ROW EXECUTE FUNCTION dawdle()")


def deadlocks(ledger: Ledger) -> int:
    """How many there were, once all other sessions have ended and so have reported theirs."""
    others = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    wait_until(lambda: not ledger.run(others))
    (row,) = ledger.run("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(row.deadlocks)


def test_the_same_events_in_different_orders_never_wait_in_a_circle(
    way: str, database_url: str, ledger: Ledger
) -> None:
    """They are inserted in the order of their keys (D8)."""
    dawdle(ledger, "BEFORE INSERT ON deliveries")
    settings = IntakeSettings(commits=2, max_commit_requests=1)
    with Receiving(way, database_url, settings=settings) as one, Receiving(way, database_url, settings=settings) as two:
        for round in range(5):
            forwards = [{"id": f"{round}-{number}"} for number in range(40)]
            answers = [one.start(signed(many(), forwards)), two.start(signed(many(), forwards[::-1]))] * 2
            assert {answer.result().status for answer in answers} == {200}
    assert deadlocks(ledger) == 0
    assert ledger.count("deliveries") == 200
    assert ledger.consistent()


def test_copies_of_dead_deliveries_in_different_orders_never_wait_in_a_circle(
    way: str, database_url: str, ledger: Ledger
) -> None:
    dawdle(ledger, "BEFORE DELETE ON dead_letters")
    names = [f"e{number}" for number in range(40)]
    settings = IntakeSettings(commits=2, max_commit_requests=1)
    forwards, backwards = ([{"id": name} for name in order] for order in (names, names[::-1]))
    with Receiving(way, database_url, settings=settings) as one, Receiving(way, database_url, settings=settings) as two:
        assert one.post(signed(many(), forwards)).status == 200
        for _ in range(5):
            for name in names:
                ledger.bury(name)
            answers = [one.start(signed(many(), forwards)), two.start(signed(many(), backwards))] * 2
            assert {answer.result().status for answer in answers} == {200}
            assert len(ledger.pending()) == 40
    assert deadlocks(ledger) == 0
    assert ledger.consistent()


def test_a_deadlock_is_tried_again(receiving: Receiving, ledger: Ledger) -> None:
    """PostgreSQL chooses us as the victim the first time."""
    ledger.run("CREATE SEQUENCE times")
    ledger.run(
        "CREATE FUNCTION deadlock() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF nextval('hookledger.times') < 3 THEN RAISE 'deadlock detected' USING ERRCODE = '40P01'; END IF;"
        " RETURN NEW; END $$"
    )
    ledger.run("CREATE TRIGGER deadlock BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION deadlock()")
    assert receiving.post(event("e1")).status == 200
    assert ledger.event_ids() == ["e1"]
