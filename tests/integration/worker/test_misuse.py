"""Handlers that end the transaction or swallow a database error: refused as failed with what to do, and whoever was
in the same batch is applied exactly once all the same (D6, B044)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, Integer, String, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from hookledger import Delivery, Inbox
from tests.integration.worker.writing import write, written
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop
from tests.ways import WAYS, Way

Work = Callable[..., None]
Misuse = Callable[[Connection], Any]

NEIGHBOURS = [f"e{number}" for number in range(20)]
GUILTY = "e10"


def leave_by_context(tx: Connection) -> None:
    with tx:
        pass


def on_the_driver(sql: str) -> Misuse:
    return lambda tx: tx.connection.cursor().execute(sql)


def caught(misuse: Misuse) -> Misuse:
    """The handler catches whatever is raised, and goes on as if nothing had happened."""

    def misuse_and_go_on(tx: Connection) -> None:
        with contextlib.suppress(Exception):
            misuse(tx)

    return misuse_and_go_on


ENDINGS: dict[str, Misuse] = {
    "commit()": lambda tx: tx.commit(),
    "rollback()": lambda tx: tx.rollback(),
    "close()": lambda tx: tx.close(),
    "invalidate()": lambda tx: tx.invalidate(),
    "detach()": lambda tx: tx.detach(),
    "with tx": leave_by_context,
    "past our class": Connection.commit,
    "get_transaction().commit()": lambda tx: tx.get_transaction().commit(),  # type: ignore[union-attr]
    "get_transaction().rollback()": lambda tx: tx.get_transaction().rollback(),  # type: ignore[union-attr]
    "get_transaction().close()": lambda tx: tx.get_transaction().close(),  # type: ignore[union-attr]
    "text COMMIT": lambda tx: tx.execute(text("COMMIT")),
    "text with a comment": lambda tx: tx.exec_driver_sql("/* done */ -- so\n commit and chain"),
    "text END": lambda tx: tx.execute(text(" end ;")),
    "text ROLLBACK": lambda tx: tx.execute(text("ROLLBACK")),
    "text ABORT": lambda tx: tx.execute(text("ABORT")),
    "after another": lambda tx: tx.exec_driver_sql("SELECT ';'; COMMIT"),
    "and another": lambda tx: tx.exec_driver_sql("COMMIT; BEGIN"),
    "our savepoint": lambda tx: tx.exec_driver_sql("RELEASE SAVEPOINT hookledger_handler"),
    "to our savepoint": lambda tx: tx.exec_driver_sql("ROLLBACK TO hookledger_handler"),
    "where we do not see it": lambda tx: tx.exec_driver_sql(r"SELECT E'\''; ROLLBACK; BEGIN; --'"),
    "driver's commit()": lambda tx: tx.connection.commit(),
    "driver's rollback()": lambda tx: tx.connection.rollback(),
    "driver's COMMIT": on_the_driver("COMMIT"),
    "driver's ROLLBACK": on_the_driver("ROLLBACK"),
    "driver's COMMIT; BEGIN": on_the_driver("COMMIT; BEGIN"),
    "driver's ROLLBACK; BEGIN": on_the_driver("ROLLBACK; BEGIN"),
}


def inbox_with_a_misuse(way: Way, misuse: Misuse, **retry: Any) -> Inbox:
    """An inbox with a handler `write` that misuses its transaction for one event among its neighbours, and another
    handler of all of them, `calm`, which does not."""
    inbox = inbox_of_shop(**retry)

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx)
        if delivery.event_id == GUILTY:
            misuse(tx)

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    inbox.accumulate(SHOP, name="calm")(way.handler(lambda delivery, tx: write(delivery, tx, "calm")))
    return inbox


def check_only_the_guilty_failed(ledger: Ledger, *, said: str) -> None:
    (failure,) = ledger.failures()
    assert (failure.event_id, failure.handler, failure.attempt) == (GUILTY, "write", 1)
    assert said in failure.error
    assert written(ledger) == {event: 1 for event in NEIGHBOURS if event != GUILTY}
    assert written(ledger, "calm") == dict.fromkeys(NEIGHBOURS, 1)
    assert ledger.outcomes_of("calm") == dict.fromkeys(NEIGHBOURS, "applied")
    assert list(ledger.pending()) == [GUILTY]
    assert ledger.pending()[GUILTY].attempts == 1
    ledger.check()


@pytest.mark.parametrize("goes_on", [False, True], ids=["raises", "goes-on"])
def test_handlers_that_end_the_transaction(way: Way, work: Work, ledger: Ledger, goes_on: bool) -> None:
    """Each in its own way, all in batches with each other and with their neighbours."""
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx)
        misuse = ENDINGS.get(delivery.event_id)
        if misuse is not None:
            (caught(misuse) if goes_on else misuse)(tx)

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    inbox.accumulate(SHOP, name="calm")(way.handler(lambda delivery, tx: write(delivery, tx, "calm")))
    events = [event for pair in zip(ENDINGS, NEIGHBOURS * 2, strict=False) for event in pair]
    ledger.record(*map(document, events))
    work(inbox)
    failed = {failure.event_id: failure.error for failure in ledger.failures()}
    assert set(failed) == set(ENDINGS)
    assert [event for event, error in failed.items() if "the transaction" not in error] == []
    assert len(ledger.failures()) == len(ENDINGS)
    assert {row.attempts for row in ledger.pending().values()} == {1}
    assert written(ledger) == dict.fromkeys(NEIGHBOURS, 1)
    assert written(ledger, "calm") == dict.fromkeys(events, 1)
    assert ledger.outcomes_of("calm") == dict.fromkeys(events, "applied")
    ledger.check()


@pytest.mark.parametrize(
    "ending", ["commit()", "text COMMIT", "where we do not see it", "driver's COMMIT", "driver's ROLLBACK"]
)
def test_one_that_ends_the_transaction_among_many(way: Way, work: Work, ledger: Ledger, ending: str) -> None:
    ledger.record(*map(document, NEIGHBOURS))
    work(inbox_with_a_misuse(way, ENDINGS[ending]))
    check_only_the_guilty_failed(ledger, said="the transaction")


def test_the_refusal_says_what_to_do(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(document(GUILTY))
    work(inbox_with_a_misuse(way, lambda tx: tx.commit()))
    (failure,) = ledger.failures()
    assert failure.error.startswith("TransactionEnded: the handler tried to commit the transaction")
    assert "Just return" in failure.error


def test_it_is_tried_again_and_dies_like_any_failure(way: Way, work: Work, ledger: Ledger) -> None:
    inbox = inbox_with_a_misuse(way, on_the_driver("COMMIT"), max_attempts=2)
    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox)
    ledger.make_due()
    work(inbox)
    assert ledger.dead()[GUILTY].reason == "failed"
    assert "ended the transaction" in ledger.dead()[GUILTY].error
    assert written(ledger) == {event: 1 for event in NEIGHBOURS if event != GUILTY}


@pytest.mark.parametrize(
    "harmless",
    [
        "SELECT CASE WHEN true THEN 1 END",
        "SELECT 'commit; rollback' AS \"end; commit\" -- ; commit",
        "DO $$ BEGIN PERFORM 1; END $$",
        "CREATE FUNCTION pg_temp.one() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END",
        "SAVEPOINT mine; ROLLBACK TO mine; RELEASE mine",
    ],
)
def test_sql_that_only_looks_like_an_end_is_run(way: Way, work: Work, ledger: Ledger, harmless: str) -> None:
    ledger.record(document(GUILTY))
    work(inbox_with_a_misuse(way, lambda tx: tx.exec_driver_sql(harmless)))
    assert ledger.failures() == []
    assert written(ledger) == {GUILTY: 1}


def test_the_drivers_connection_may_be_used(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox_with_a_misuse(way, on_the_driver("INSERT INTO written (event_id, handler) VALUES ('x', 'driver')")))
    assert ledger.failures() == []
    assert written(ledger, "driver") == {"x": 1}
    assert written(ledger) == dict.fromkeys(NEIGHBOURS, 1)


def test_options_that_a_handler_sets_are_its_own(way: Way, work: Work, ledger: Ledger) -> None:
    def stream(tx: Connection) -> None:
        options = {"stream_results": True, "yield_per": 2, "schema_translate_map": {None: "elsewhere"}}
        with tx.execution_options(**options).execute(text("SELECT generate_series(1, 5)")) as rows:
            assert next(iter(rows)) == (1,)

    ledger.record(*map(document, NEIGHBOURS))
    work(inbox_with_a_misuse(way, stream), slots=1, batch=5)
    assert ledger.failures() == []
    assert written(ledger) == written(ledger, "calm") == dict.fromkeys(NEIGHBOURS, 1)


# A database error that is caught: B044 in both variants.

DUPLICATE = "INSERT INTO uniques VALUES ('taken')"


@pytest.fixture
def uniques(ledger: Ledger) -> None:
    ledger.execute("CREATE TABLE uniques (name text PRIMARY KEY)")
    ledger.execute(DUPLICATE)


@pytest.mark.usefixtures("uniques")
@pytest.mark.parametrize("insert", [lambda tx: tx.execute(text(DUPLICATE)), on_the_driver(DUPLICATE)])
def test_b044_a_swallowed_database_error(way: Way, work: Work, ledger: Ledger, insert: Misuse) -> None:
    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox_with_a_misuse(way, caught(insert)))
    check_only_the_guilty_failed(ledger, said="ErrorSwallowed: the handler caught a database error")
    assert "begin_nested" in ledger.failures()[0].error


@pytest.mark.usefixtures("uniques")
def test_b044_the_first_cause_is_told(way: Way, work: Work, ledger: Ledger) -> None:
    def swallow_and_raise_another(tx: Connection) -> None:
        with contextlib.suppress(IntegrityError):
            tx.execute(text(DUPLICATE))
        raise LookupError("something else")

    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox_with_a_misuse(way, swallow_and_raise_another))
    check_only_the_guilty_failed(ledger, said="LookupError: something else")
    assert "UniqueViolation" in ledger.failures()[0].error
    assert "uniques_pkey" in ledger.pending()[GUILTY].last_error  # type: ignore[operator]


@pytest.mark.usefixtures("uniques")
def test_a_database_error_that_is_raised_is_told_as_it_is(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox_with_a_misuse(way, lambda tx: tx.execute(text(DUPLICATE))))
    check_only_the_guilty_failed(ledger, said="UniqueViolation: duplicate key")
    assert "INSERT" not in ledger.failures()[0].error


@pytest.mark.usefixtures("uniques")
def test_begin_nested_is_the_right_way(way: Way, work: Work, ledger: Ledger) -> None:
    def try_in_a_savepoint(tx: Connection) -> None:
        with pytest.raises(IntegrityError), tx.begin_nested():
            tx.execute(text(DUPLICATE))
        with tx.begin_nested():
            tx.execute(text("INSERT INTO uniques VALUES ('free')"))

    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox_with_a_misuse(way, try_in_a_savepoint))
    assert ledger.failures() == []
    assert written(ledger) == dict.fromkeys(NEIGHBOURS, 1)
    assert ledger.value("SELECT count(*) FROM uniques") == 2


def test_a_savepoint_left_open_is_refused(way: Way, work: Work, ledger: Ledger) -> None:
    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox_with_a_misuse(way, lambda tx: tx.begin_nested()))
    check_only_the_guilty_failed(ledger, said="begin_nested() still open")


@pytest.mark.usefixtures("uniques")
def test_a_failure_inside_of_savepoints_is_taken_back(way: Way, work: Work, ledger: Ledger) -> None:
    def fail_deep_inside(tx: Connection) -> None:
        with tx.begin_nested(), tx.begin_nested():
            tx.execute(text("INSERT INTO uniques VALUES ('free')"))
            raise LookupError("deep inside")

    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox_with_a_misuse(way, fail_deep_inside))
    check_only_the_guilty_failed(ledger, said="deep inside")
    assert ledger.value("SELECT count(*) FROM uniques") == 1


# Constraints that are checked at the commit.


@pytest.fixture
def parents(ledger: Ledger) -> None:
    ledger.execute("CREATE TABLE parents (name text PRIMARY KEY)")
    ledger.execute("CREATE TABLE children (name text REFERENCES parents DEFERRABLE INITIALLY DEFERRED, event_id text)")


@pytest.mark.usefixtures("parents")
def test_a_constraint_broken_at_the_commit_charges_the_guilty_handler_only(
    way: Way, work: Work, ledger: Ledger
) -> None:
    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox_with_a_misuse(way, lambda tx: tx.execute(text("INSERT INTO children VALUES ('nobody')"))))
    check_only_the_guilty_failed(ledger, said="ForeignKeyViolation")


@pytest.mark.usefixtures("parents")
def test_a_constraint_stays_deferred_for_the_handlers_that_follow(way: Way, work: Work, ledger: Ledger) -> None:
    """Each delivery goes alone because one broke the commit; the others still may write the child first."""
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        tx.execute(text("INSERT INTO children VALUES (:name, :name)"), {"name": delivery.event_id})
        if delivery.event_id != GUILTY:
            tx.execute(text("INSERT INTO parents VALUES (:name)"), {"name": delivery.event_id})

    inbox.accumulate(SHOP, name="first")(way.handler(lambda delivery, tx: write(delivery, tx)))
    inbox.accumulate(SHOP, name="family")(way.handler(body))
    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox)
    assert [(failure.event_id, failure.handler) for failure in ledger.failures()] == [(GUILTY, "family")]
    assert ledger.value("SELECT count(*) FROM children") == len(NEIGHBOURS) - 1
    assert written(ledger) == dict.fromkeys(NEIGHBOURS, 1)


def test_what_breaks_only_the_commit_itself_charges_the_handler(way: Way, work: Work, ledger: Ledger) -> None:
    """The trigger passes while savepoints are open, so which handler it is has to be found by leaving each out."""
    ledger.execute(
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT FROM hookledger.effects WHERE delivery_id = NEW.delivery AND handler = 'write') THEN
                RAISE 'not at the commit';
            END IF;
            RETURN NULL;
        END $$
        """
    )
    ledger.execute("CREATE TABLE late (delivery bigint)")
    ledger.execute(
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx)
        if delivery.event_id == GUILTY:
            tx.execute(text("INSERT INTO late VALUES (:id)"), {"id": delivery.id})

    inbox.accumulate(SHOP, name="calm")(way.handler(lambda delivery, tx: write(delivery, tx, "calm")))
    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox)
    check_only_the_guilty_failed(ledger, said="not at the commit")


# The same with sessions.


class Base(DeclarativeBase):
    """Tables of the application."""


class Thing(Base):
    """A row with a unique name."""

    __tablename__ = "things"
    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String, unique=True)


@pytest.fixture
def things(ledger: Ledger) -> None:
    Base.metadata.create_all(ledger.engine)


def inbox_with_a_session_misuse(way: Way, misuse: Callable[[Session], Any]) -> Inbox:
    """As `inbox_with_a_misuse`, with a session; what it adds is flushed by hookledger."""
    inbox = inbox_of_shop()

    def body(delivery: Delivery, session: Session) -> None:
        session.add(Thing(name=delivery.event_id))
        if delivery.event_id == GUILTY:
            misuse(session)

    inbox.accumulate(SHOP, name="write")(way.session_handler(body))
    inbox.accumulate(SHOP, name="calm")(way.handler(lambda delivery, tx: write(delivery, tx, "calm")))
    return inbox


def check_only_the_guilty_session_failed(ledger: Ledger, *, said: str) -> None:
    (failure,) = ledger.failures()
    assert (failure.event_id, failure.handler) == (GUILTY, "write")
    assert said in failure.error
    things = [row.name for row in ledger.execute("SELECT name FROM things")]
    assert sorted(things) == sorted(event for event in NEIGHBOURS if event != GUILTY)
    assert written(ledger, "calm") == dict.fromkeys(NEIGHBOURS, 1)
    assert list(ledger.pending()) == [GUILTY]


def flush_a_duplicate(session: Session) -> None:
    session.add(Thing(name="e1"))
    session.flush()


def swallow_a_duplicate(session: Session) -> None:
    with contextlib.suppress(IntegrityError):
        flush_a_duplicate(session)


def swallow_a_statement(session: Session) -> None:
    with contextlib.suppress(DBAPIError):
        session.execute(text("INSERT INTO things (name) VALUES ('e1')"))


def leave_session_by_context(session: Session) -> None:
    with session:
        pass


SESSION_MISUSES: dict[str, tuple[Callable[[Session], Any], str]] = {
    "commit()": (lambda session: session.commit(), "tried to commit"),
    "rollback()": (lambda session: session.rollback(), "tried to roll back"),
    "close()": (lambda session: session.close(), "tried to close"),
    "reset()": (lambda session: session.reset(), "tried to reset"),
    "invalidate()": (lambda session: session.invalidate(), "tried to invalidate"),
    "with session": (leave_session_by_context, "tried to close"),
    "connection().commit()": (lambda session: session.connection().commit(), "tried to commit"),
    "text COMMIT": (lambda session: session.execute(text("COMMIT")), "tried to COMMIT"),
    "a duplicate": (flush_a_duplicate, "UniqueViolation"),
    "a swallowed duplicate": (swallow_a_duplicate, "ErrorSwallowed"),
    "a swallowed statement": (swallow_a_statement, "ErrorSwallowed"),
    "a duplicate left to us": (lambda session: session.add(Thing(name="e1")), "UniqueViolation"),
    "a savepoint left open": (lambda session: session.begin_nested(), "still open"),
}


@pytest.mark.usefixtures("things")
@pytest.mark.parametrize("goes_on", [False, True], ids=["raises", "goes-on"])
def test_sessions_that_are_misused(way: Way, work: Work, ledger: Ledger, goes_on: bool) -> None:
    """As with connections. Going on after an error that was not the session's own refusal is another misuse."""
    misuses = {
        name: (does, said)
        for name, (does, said) in SESSION_MISUSES.items()
        if not goes_on or (said.startswith("tried to") and name != "with session")
    }
    inbox = inbox_of_shop()

    def body(delivery: Delivery, session: Session) -> None:
        session.add(Thing(name=delivery.event_id))
        does, _ = misuses.get(delivery.event_id, (None, ""))
        if does is not None:
            with contextlib.suppress(Exception if goes_on else ()):
                does(session)

    inbox.accumulate(SHOP, name="write")(way.session_handler(body))
    inbox.accumulate(SHOP, name="calm")(way.handler(lambda delivery, tx: write(delivery, tx, "calm")))
    events = [*NEIGHBOURS, *misuses]
    # The neighbours first: it is their names that are taken.
    ledger.record(*map(document, events))
    work(inbox, slots=1)
    failed = {failure.event_id: failure.error for failure in ledger.failures()}
    assert set(failed) == set(misuses)
    assert {name: error for name, error in failed.items() if misuses[name][1] not in error} == {}
    assert sorted(row.name for row in ledger.execute("SELECT name FROM things")) == sorted(NEIGHBOURS)
    assert written(ledger, "calm") == dict.fromkeys(events, 1)
    ledger.check()


@pytest.mark.usefixtures("things")
def test_a_session_used_rightly(way: Way, work: Work, ledger: Ledger) -> None:
    def use(session: Session) -> None:
        with pytest.raises(IntegrityError), session.begin_nested():
            flush_a_duplicate(session)
        with session.begin_nested():
            session.add(Thing(name="extra"))
        assert session.query(Thing).filter_by(name="extra").one().id

    ledger.record(*[document(event) for event in NEIGHBOURS])
    work(inbox_with_a_session_misuse(way, use))
    assert ledger.failures() == []
    things = [row.name for row in ledger.execute("SELECT name FROM things")]
    assert sorted(things) == sorted([*NEIGHBOURS, "extra"])


@pytest.mark.usefixtures("things")
def test_a_session_that_is_kept_cannot_be_used_for_the_next_delivery(way: Way, work: Work, ledger: Ledger) -> None:
    kept: list[Session] = []
    inbox = inbox_of_shop()

    def body(delivery: Delivery, session: Session) -> None:
        kept.append(session)
        if len(kept) > 1:
            kept[0].execute(text("SELECT 1"))

    inbox.accumulate(SHOP, name="keep")(way.session_handler(body))
    ledger.record(document("e1"), document("e2"))
    work(inbox, slots=1)
    (failure,) = ledger.failures()
    assert failure.event_id == "e2"
    assert "used after its handler had returned" in failure.error


# What only a coroutine can do.

ASYNCHRONOUS = next(way for way in WAYS if way.async_handlers)


async def commit_awaited(tx: AsyncConnection) -> None:
    await tx.commit()


async def close_awaited(tx: AsyncConnection) -> None:
    await tx.close()


async def commit_on_the_raw_connection(tx: AsyncConnection) -> None:
    raw = await tx.get_raw_connection()
    await raw.driver_connection.commit()  # type: ignore[union-attr]


@pytest.mark.parametrize("misuse", [commit_awaited, close_awaited, commit_on_the_raw_connection])
def test_a_coroutine_that_ends_the_transaction(database_url: str, ledger: Ledger, misuse: Any) -> None:
    inbox = inbox_of_shop()

    async def handle(delivery: Delivery, tx: AsyncConnection) -> None:
        await tx.run_sync(lambda connection: write(delivery, connection))
        if delivery.event_id == GUILTY:
            await misuse(tx)

    inbox.accumulate(SHOP, name="write")(handle)
    inbox.accumulate(SHOP, name="calm")(ASYNCHRONOUS.handler(lambda delivery, tx: write(delivery, tx, "calm")))
    ledger.record(*[document(event) for event in NEIGHBOURS])
    ASYNCHRONOUS.work(database_url, inbox)
    check_only_the_guilty_failed(ledger, said="the transaction")


@pytest.mark.usefixtures("things")
def test_a_coroutine_that_commits_its_session(database_url: str, ledger: Ledger) -> None:
    inbox = inbox_of_shop()

    async def handle(delivery: Delivery, session: AsyncSession) -> None:
        session.add(Thing(name=delivery.event_id))
        if delivery.event_id == GUILTY:
            await session.commit()

    inbox.accumulate(SHOP, name="write")(handle)
    inbox.accumulate(SHOP, name="calm")(ASYNCHRONOUS.handler(lambda delivery, tx: write(delivery, tx, "calm")))
    ledger.record(*[document(event) for event in NEIGHBOURS])
    ASYNCHRONOUS.work(database_url, inbox)
    check_only_the_guilty_session_failed(ledger, said="tried to commit")


def test_a_coroutine_whose_statement_times_out_is_charged(database_url: str, ledger: Ledger) -> None:
    """SQLAlchemy drops a connection on which a statement is cancelled: the batch is lost with it, but not for the
    others, and not for ever."""
    inbox = inbox_of_shop()
    started: list[str] = []

    async def handle(delivery: Delivery, tx: AsyncConnection) -> None:
        started.append(delivery.event_id)
        await tx.run_sync(lambda connection: write(delivery, connection))
        if delivery.event_id == GUILTY:
            async with asyncio.timeout(0.05):
                await tx.execute(text("SELECT pg_sleep(60)"))

    inbox.accumulate(SHOP, name="write")(handle)
    inbox.accumulate(SHOP, name="calm")(ASYNCHRONOUS.handler(lambda delivery, tx: write(delivery, tx, "calm")))
    ledger.record(*[document(event) for event in NEIGHBOURS])
    ASYNCHRONOUS.work(database_url, inbox)
    check_only_the_guilty_failed(ledger, said="TimeoutError")
    assert started.count(GUILTY) == 1
