"""Replays of dead and settled deliveries: what they touch, what they do not do twice, how they end (B052 to B057)."""

from __future__ import annotations

import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine

from hookledger import SetupError
from hookledger.cli.ended import advice, ended_in_words, status_of_ended
from hookledger.errors import ReplayError
from hookledger.ledger.repository import Repository
from hookledger.ledger.schema import tables
from hookledger.operate.filters import Filter, State
from hookledger.operate.replay import (
    Kind,
    Matching,
    Options,
    Plan,
    Replay,
    ReplayState,
    Run,
    Selection,
    begin,
    find,
    newest,
    resume,
    stop,
)
from hookledger.operate.replay import queue as queueing
from hookledger.operate.replay.queue import queue
from hookledger.operate.replay.run import LEAST_TRIED, Progress
from hookledger.operate.replay.standing import standings
from hookledger.operate.retention import Retention, brief
from hookledger.operate.retention.brief import Patience
from hookledger.operate.retention.prune import prune
from hookledger.retry import RetryPolicy
from tests.aged import DAY, make_older
from tests.outcomes import SHOP, document
from tests.processes import wait_until
from tests.replaying import SCHEMA, Shop, of_ids

FORGET_ADD: dict[str, Any] = {"kind": Kind.FORGET, "matching": Matching("add")}


def numbers(plan: Plan) -> dict[str, int]:
    """What a plan counts, where that is more than nothing."""
    names = ("dead", "settled", "run", "stale", "skipped", "unhandled", "gone", "left_settled", "left_pending")
    return {name: getattr(plan, name) for name in names if getattr(plan, name)}


def test_b052_only_dead_ones_unless_settled_ones_are_asked_for(shop: Shop) -> None:
    shop.facts(*[f"done-{number}" for number in range(10)])
    dead = shop.facts("dead-1", "dead-2", "dead-3", fails=True)
    shop.facts("later-1", "later-2", waits=True)
    shop.work()
    assert (len(shop.dead()), len(shop.pending()), shop.mails()) == (3, 2, 10)
    plan = shop.plan(inbox=shop.inbox)
    assert numbers(plan) == {"dead": 3, "run": 3, "left_settled": 10, "left_pending": 2}
    everything = Selection(include_settled=True)
    assert numbers(shop.plan(everything, inbox=shop.inbox)) == {
        "dead": 3,
        "settled": 10,
        "run": 3,
        "skipped": 10,
        "left_pending": 2,
    }
    replay = shop.replay()
    assert replay.queued == 3
    assert shop.replayed() == [(replay.id, id) for id in dead]
    shop.mended = True
    shop.work()
    again = shop.replay(everything)
    assert again.queued == 13
    shop.work()
    assert (shop.total(), shop.mails()) == (13 * 5, 13)
    assert set(shop.pending()) == {"later-1", "later-2"}
    shop.check()


def test_b053_replays_at_once_add_once_and_mail_once(shop: Shop) -> None:
    (id_,) = shop.facts("e1")
    shop.work()
    with shop.working():
        shop.run(shop.begin(of_ids(id_)), patience=60.0)
        # Of different filters, since a second one of the same is refused while the first one runs.
        both = [shop.begin(of_ids(id_)), shop.begin(Selection(Filter(event_id="e1"), include_settled=True))]
        with ThreadPoolExecutor(2) as threads:
            ended = list(threads.map(lambda replay: shop.run(replay, patience=60.0), both))
        wait_until(lambda: not shop.pending())
    assert {replay.state for replay in ended} == {ReplayState.DONE}
    assert (shop.total(), shop.mails()) == (5, 1)


def test_b053_a_forced_run_is_an_act_of_its_own_with_a_record(shop: Shop) -> None:
    (id_,) = shop.facts("e1")
    shop.facts("other")
    shop.work()
    forced = shop.replay(of_ids(id_, **FORGET_ADD))
    shop.work()
    assert (shop.total(), shop.mails()) == (15, 3)
    assert (forced.kind, forced.who, forced.queued) == (Kind.FORGET, "ann", 1)
    assert find(shop.pool, SCHEMA, forced.id).selection.matching == Matching("add")
    shop.check()


def test_a_role_that_may_not_forget_leaves_no_record_behind(shop: Shop) -> None:
    selection = Selection(**FORGET_ADD)
    plan = shop.plan(selection)
    role = f"hookledger_test_{secrets.token_hex(4)}"
    shop.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA hookledger TO {role}")
    shop.execute(f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA hookledger TO {role}")
    engine = create_engine(shop.url, connect_args={"options": f"-c role={role}"})
    try:
        with pytest.raises(SetupError, match="as the owner"):
            begin(engine, SCHEMA, selection, plan, who="ann")
    finally:
        engine.dispose()
        shop.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
    assert shop.value("SELECT count(*) FROM hookledger.replays") == 0


def test_a_forced_run_is_about_deliveries_with_an_effect_of_the_handler(shop: Shop) -> None:
    shop.facts("e1")
    shop.thing("s1", 1)
    shop.facts("dead", fails=True)
    shop.work()
    plan = shop.plan(Selection(**FORGET_ADD), inbox=shop.inbox)
    assert numbers(plan) == {"settled": 1, "run": 1}
    assert shop.replay(Selection(**FORGET_ADD)).queued == 1
    assert set(shop.pending()) == {"e1"}


@pytest.fixture
def deleted(shop: Shop) -> list[int]:
    """A thing that was made, changed, and is gone: the ids of its deliveries."""
    ids = []
    for number, fields in enumerate(({}, {}, {"deleted": True}), 1):
        ids.append(shop.thing(f"v{number}", number, **fields))
        shop.work()
    assert shop.states("save")["t"].deleted
    return ids


def test_b054_an_old_snapshot_does_not_come_back(shop: Shop, deleted: list[int]) -> None:
    before = shop.states()
    selection = of_ids(deleted[1])
    assert numbers(shop.plan(selection, inbox=shop.inbox)) == {"settled": 1, "skipped": 1}
    replay = shop.replay(selection)
    shop.work()
    assert replay.queued == 1
    assert shop.states() == before


@pytest.mark.parametrize("knows_handlers", [True, False])
def test_b054_even_if_what_was_done_is_forgotten(knows_handlers: bool, shop: Shop, deleted: list[int]) -> None:
    before = shop.states()
    selection = of_ids(*deleted[:2], kind=Kind.FORGET, matching=Matching("save"))
    plan = shop.plan(selection, inbox=shop.inbox if knows_handlers else None)
    assert numbers(plan) == {"settled": 2, "stale": 2}
    shop.replay(selection)
    shop.work()
    assert shop.states() == before
    assert shop.outcomes_of("save") == {"v1": "stale", "v2": "stale", "v3": "applied"}


@pytest.mark.parametrize("knows_handlers", [True, False])
def test_b054_a_plan_asks_for_each_resource_whether_there_is_a_newer_one(knows_handlers: bool, shop: Shop) -> None:
    for resource, version in (("a", 1), ("b", 5), ("c", 3)):
        shop.record(document(f"dead-{resource}", resource, version, fails=True))
    shop.facts("fact", fails=True)
    shop.work()
    for resource, version in (("a", 2), ("b", 2)):
        shop.record(document(f"new-{resource}", resource, version))
    shop.work()
    assert len(shop.dead()) == 4
    plan = shop.plan(inbox=shop.inbox if knows_handlers else None)
    assert numbers(plan) == {"dead": 4, "run": 3, "stale": 1, "left_settled": 2}


@pytest.mark.parametrize("knows_handlers", [True, False])
def test_b054_a_dead_one_is_said_to_be_stale_and_is_so(knows_handlers: bool, shop: Shop) -> None:
    id_ = shop.thing("v2", 2, fails=True)
    shop.work()
    shop.thing("v3", 3, deleted=True)
    # One look ahead of the worker, that would close it.
    shop.work()
    shop.mended = True
    assert numbers(shop.plan(of_ids(id_, settled=False), inbox=shop.inbox if knows_handlers else None)) == {
        "dead": 1,
        "stale": 1,
    }
    assert shop.replay(of_ids(id_, settled=False)).queued == 1
    shop.work()
    assert shop.outcomes_of("save") == {"v2": "stale", "v3": "applied"}
    assert shop.states("save")["t"].deleted


def test_b055_a_second_press_is_answered_and_queues_nothing(shop: Shop) -> None:
    shop.facts(*[f"e{number}" for number in range(30)])
    shop.bury_all()
    first = shop.begin()
    with pytest.raises(ReplayError, match=f"replay {first.id} of the same deliveries has not ended"):
        shop.begin()
    assert shop.run(first, patience=0.0).queued == 30
    assert numbers(shop.plan()) == {"left_pending": 30}
    assert shop.replay().queued == 0
    assert len(shop.replayed()) == 30


def test_b055_of_two_presses_at_once_one_begins(shop: Shop) -> None:
    shop.facts("e1", fails=True)
    shop.work()
    plan = shop.plan()
    at_once = threading.Barrier(4)

    def press(_: int) -> object:
        at_once.wait()
        try:
            return begin(shop.pool, SCHEMA, Selection(), plan, who="ann")
        except ReplayError as error:
            return error

    with ThreadPoolExecutor(4) as threads:
        pressed = list(threads.map(press, range(4)))
    assert sum(isinstance(one, Replay) for one in pressed) == 1


def test_b055_it_goes_in_batches_and_is_resumed_where_it_was(shop: Shop) -> None:
    ids = shop.facts(*[f"e{number}" for number in range(50)])
    shop.bury_all()
    begun = shop.begin(batch=10, most_pending=0)
    seen: list[int] = []
    run: list[Run] = []

    def stop_at_twenty(progress: Progress) -> None:
        seen.append(progress.queued)
        if progress.queued == 20:
            run[0].stop()

    run.append(Run(shop.pool, begun, SCHEMA, progress=stop_at_twenty, patience=0.0))
    stopped = run[0].run()
    assert (stopped.state, stopped.queued, stopped.result["why"]) == (ReplayState.STOPPED, 20, "interrupted")
    assert seen[:2] == [10, 20]
    assert (len(shop.pending()), len(shop.dead())) == (20, 30)
    later = shop.facts("later")
    shop.bury_all()
    ended = shop.run(resume(shop.pool, SCHEMA, begun.id))
    assert (ended.state, ended.queued) == (ReplayState.DONE, 50)
    assert shop.replayed() == [(begun.id, id) for id in ids], "each once"
    assert set(shop.dead()) >= {"later"}
    assert later[0] > ended.plan.until_id
    with pytest.raises(ReplayError, match="is done"):
        resume(shop.pool, SCHEMA, begun.id)


def test_b055_it_can_be_stopped_from_elsewhere(shop: Shop) -> None:
    shop.facts(*[f"e{number}" for number in range(30)])
    shop.bury_all()
    begun = shop.begin(most_pending=10)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(shop.run, begun)
        wait_until(lambda: len(shop.pending()) == 10)
        stop(shop.pool, SCHEMA, begun.id, why="stopped by bob")
        ended = running.result()
    assert (ended.state, ended.queued, ended.result["why"]) == (ReplayState.STOPPED, 10, "stopped by bob")
    with pytest.raises(ReplayError, match="does not run: it is stopped"):
        stop(shop.pool, SCHEMA, begun.id)


def test_b055_two_runs_of_one_replay_share_it(shop: Shop) -> None:
    ids = shop.facts(*[f"e{number}" for number in range(60)])
    shop.bury_all()
    begun = shop.begin(batch=2, most_pending=0)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(shop.run, [begun, begun]))
    assert shop.replayed() == [(begun.id, id) for id in ids]
    assert find(shop.pool, SCHEMA, begun.id).queued == 60


def test_b056_what_no_handler_takes_any_more_is_seen_and_can_be_replayed(shop: Shop) -> None:
    shop.facts("e1", "e2")
    only_things = shop.make_inbox()
    del only_things.handlers["add"]
    shop.work(only_things)
    assert shop.outcomes() == {("e1", "-"): "ignored", ("e2", "-"): "ignored"}
    ignored = Selection(Filter.of_document({"outcome": "ignored"}), include_settled=True)
    assert numbers(shop.plan(ignored, inbox=only_things)) == {"settled": 2, "unhandled": 2}
    assert numbers(shop.plan(ignored, inbox=shop.inbox)) == {"settled": 2, "run": 2}
    shop.replay(ignored)
    shop.work()
    assert (shop.total(), shop.mails()) == (10, 2)


def test_b056_a_plan_knows_the_effects_of_a_former_name(shop: Shop) -> None:
    shop.facts("e1")
    shop.work(shop.make_inbox(add="billing.on_paid"))
    renamed = shop.make_inbox(add="payments.on_paid")
    everything = Selection(include_settled=True)
    assert numbers(shop.plan(everything, inbox=renamed)) == {"settled": 1, "run": 1}
    del renamed.handlers["payments.on_paid"]
    renamed.accumulate(SHOP, "fact.*", name="payments.on_paid", aliases=["billing.on_paid"])(shop.add)
    assert numbers(shop.plan(everything, inbox=renamed)) == {"settled": 1, "skipped": 1}
    shop.replay(everything)
    shop.work(renamed)
    assert shop.mails() == 1


def test_b057_one_that_is_in_progress_is_left_alone(shop: Shop) -> None:
    (id_,) = shop.facts("e1")
    runs = threading.Semaphore(0)
    go_on = threading.Event()
    inbox = shop.make_inbox()
    del inbox.handlers["add"]

    @inbox.accumulate(SHOP, "fact.*")
    def slow(delivery: Any, tx: Any) -> None:
        runs.release()
        go_on.wait()

    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(shop.work, inbox)
        assert runs.acquire(timeout=60)
        with shop.pool.connect() as connection:
            (standing,) = standings(connection, SCHEMA, [id_])
        assert (standing.state, standing.in_progress, standing.attempts) == (State.PENDING, True, 1)
        assert numbers(shop.plan(of_ids(id_))) == {"left_pending": 1}
        assert shop.replay(of_ids(id_)).queued == 0
        go_on.set()
        working.result()
    assert not runs.acquire(blocking=False), "it ran once"
    assert shop.outcomes() == {("e1", "slow"): "applied"}


def test_b057_one_that_is_scheduled_is_left_alone(shop: Shop) -> None:
    (id_,) = shop.facts("e1", waits=True)
    shop.work()
    before = shop.execute("SELECT * FROM hookledger.pending")
    with shop.pool.connect() as connection:
        (standing, unknown) = standings(connection, SCHEMA, [id_, 999])
    assert (standing.state, standing.in_progress, standing.due_at) == (State.PENDING, False, before[0].due_at)
    assert unknown.state is None
    assert shop.replay(of_ids(id_)).queued == 0
    assert shop.execute("SELECT * FROM hookledger.pending") == before


@pytest.mark.parametrize("settled", [True, False])
def test_b057_twice_at_once_it_is_queued_once(settled: bool, shop: Shop) -> None:
    """The second one waits for the first one's transaction, and finds nothing left."""
    ids = shop.facts("e1", "e2", fails=not settled)
    shop.work()
    one = shop.begin(of_ids(*ids))
    other = shop.begin(Selection(Filter(source=SHOP), include_settled=True))
    t = tables(SCHEMA)
    with ThreadPoolExecutor(1) as thread, shop.pool.begin() as first:
        assert len(queue(first, t, one, 10).ids) == 2
        second = thread.submit(shop.run, other)
        wait_until(lambda: shop.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
        first.commit()
        assert second.result().queued == 0
    assert len(shop.pending()) == 2
    assert shop.replayed() == [(one.id, id) for id in ids]
    assert shop.dead() == {}


def test_what_a_running_replay_has_had_is_not_queued_by_another(shop: Shop) -> None:
    """Unless that one has not been heard of for so long that its process must be gone."""
    (id_,) = shop.facts("e1")
    shop.work()
    one = shop.begin(of_ids(id_))
    with shop.pool.begin() as connection:
        assert queue(connection, tables(SCHEMA), one, 10).ids == (id_,)
    shop.work()
    other = Selection(Filter(event_id="e1"), include_settled=True)
    assert shop.replay(other).queued == 0
    shop.execute("UPDATE hookledger.replays SET result = jsonb_build_object('batch_at', now() - interval '1 hour')")
    assert shop.replay(other).queued == 1


def test_live_deliveries_come_after_no_more_than_the_bound(shop: Shop) -> None:
    """Of a replay, `most_pending` wait at the most; so many come before a delivery that is received now."""
    bound = 10
    shop.facts(*[f"old-{number}" for number in range(60)])
    shop.bury_all()
    begun = shop.begin(most_pending=bound, batch=4)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(shop.run, begun, patience=60.0)
        wait_until(lambda: len(shop.pending()) == bound)
        (live,) = shop.facts("live")
        with shop.pool.connect() as connection:
            in_order = f"SELECT delivery_id FROM {SCHEMA}.pending ORDER BY due_at, delivery_id"
            order = connection.exec_driver_sql(in_order).scalars().all()
            rows = Repository.of(SCHEMA).claim(connection, 100, RetryPolicy())
            connection.rollback()
        assert {row.id for row in rows} == {*order}
        assert order.index(live) == bound
        most: list[int] = []
        shop.fail = lambda delivery: most.append(waiting(shop))  # type: ignore[method-assign]
        with shop.working(batch=3):
            assert running.result().queued == 60
    assert 0 < max(most) <= bound
    assert shop.mails() == 61


def waiting(shop: Shop) -> int:
    """How many deliveries of replays are pending."""
    return int(shop.value("SELECT count(*) FROM hookledger.pending JOIN hookledger.replayed USING (delivery_id)"))


def test_the_canary_goes_first_and_the_others_only_if_it_ends_well(shop: Shop) -> None:
    shop.facts(*[f"e{number}" for number in range(30)], fails=True)
    shop.work()
    begun = shop.begin(canary=3)
    with shop.working():
        failed = shop.run(begun, patience=60.0)
        assert (failed.state, failed.queued) == (ReplayState.FAILED, 3)
        assert "of the canary of 3 failed" in failed.result["why"]
        assert len(shop.dead()) == 30
        shop.mended = True
        ended = shop.run(resume(shop.pool, SCHEMA, begun.id), patience=60.0)
    assert (ended.state, ended.queued) == (ReplayState.DONE, 30)
    # Those of the failed canary are dead again, and behind the cursor.
    assert len(shop.dead()) == 3
    assert ended.result["outcomes"] == {"applied": 27, "dead": 3}


def test_a_canary_larger_than_the_bound_is_whole(shop: Shop) -> None:
    shop.facts(*[f"e{number}" for number in range(12)])
    shop.facts("late", fails=True)
    shop.facts("last")
    shop.bury_all()
    with shop.working():
        ended = shop.run(shop.begin(canary=13, most_pending=4), patience=60.0)
    assert (ended.state, ended.queued) == (ReplayState.FAILED, 13)
    assert set(shop.dead()) == {"late", "last"}


@pytest.mark.parametrize("bound", [{"max_failures": 0.05}, {"max_failed": 4}])
def test_it_ends_when_too_much_fails(bound: dict[str, Any], shop: Shop) -> None:
    shop.facts(*[f"e{number}" for number in range(80)], fails=True)
    shop.work()
    with shop.working():
        ended = shop.run(shop.begin(most_pending=5, **bound), patience=60.0)
    assert ended.state is ReplayState.FAILED
    assert ended.queued <= LEAST_TRIED + 10
    assert "failed, more than" in ended.result["why"]


def test_the_result_tells_what_became_of_them(shop: Shop) -> None:
    shop.facts("done")
    shop.facts("dead", fails=True)
    shop.facts("mended", fails=True)
    shop.work()
    shop.execute(
        "UPDATE hookledger.payloads SET body = replace(convert_from(body, 'UTF8'), 'true', 'false')::bytea"
        " WHERE id = (SELECT payload_id FROM hookledger.deliveries WHERE event_id = 'mended')"
    )
    with shop.working():
        ended = shop.run(shop.begin(Selection(include_settled=True)), patience=60.0)
    assert ended.result["outcomes"] == {"applied": 1, "dead": 1, "skipped": 1}
    assert [one.id for one in newest(shop.pool, SCHEMA)] == [ended.id]


def test_the_end_says_when_no_worker_runs(shop: Shop) -> None:
    shop.facts("e1", "e2", fails=True)
    shop.work()
    ended = shop.run(shop.begin())
    assert ended.result["untouched"] == 2
    assert "2 made pending; 2 still pending" in ended_in_words(ended)
    assert "no worker seems to run" in (advice(ended) or "")
    assert status_of_ended(ended, interrupted=False) == 0


def test_the_end_says_when_what_is_paused_is_waited_for(shop: Shop) -> None:
    shop.facts("e1", "e2", fails=True)
    shop.work()
    park = "UPDATE hookledger.pending SET parked = true"
    ended = shop.run(shop.begin(), progress=lambda made: shop.execute(park))
    assert (ended.result["untouched"], ended.result["parked"]) == (0, 2)
    assert "2 wait for what is paused" in (advice(ended) or "")


def test_a_replay_of_which_some_failed_again_is_partly_done(shop: Shop) -> None:
    shop.facts("dead", fails=True)
    (waits,) = shop.facts("waits", waits=True)
    shop.work()
    shop.bury_all()
    with shop.working():
        ended = shop.run(shop.begin(), patience=60.0)
        assert ended.result["outcomes"] == {"dead": 1, "failed": 1}
        assert "1 dead; 1 failed and wait for their next attempt" in ended_in_words(ended)
        assert status_of_ended(ended, interrupted=False) == 1
        shop.facts("good")
        wait_until(lambda: set(shop.pending()) == {"waits"})
        ended = shop.run(shop.begin(Selection(include_settled=True)), patience=60.0)
    assert ended.queued == 2
    assert status_of_ended(ended, interrupted=False) == 5
    assert advice(ended) is None
    assert waits


def test_what_lost_its_bytes_is_not_touched(shop: Shop) -> None:
    dropped, erased, left = shop.facts("dropped", "erased", "left", fails=True)
    shop.work()
    shop.execute(
        "DELETE FROM hookledger.payloads p USING hookledger.deliveries d WHERE d.id = :id AND p.id = payload_id",
        id=dropped,
    )
    shop.execute("INSERT INTO hookledger.erased (delivery_id, who) VALUES (:id, 'ann')", id=erased)
    assert numbers(shop.plan()) == {"dead": 1, "run": 1, "gone": 2}
    assert shop.replay().queued == 1
    assert set(shop.dead()) == {"dropped", "erased"}
    assert set(shop.pending()) == {"left"}
    assert left


def test_one_that_died_again_meanwhile_is_pending_only(shop: Shop) -> None:
    """Between the look at a settled delivery and its row in pending another replay may have had it, and its death."""
    (id_,) = shop.facts("e1")
    shop.work()
    begun = shop.begin(of_ids(id_))
    shop.execute(
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO hookledger.dead_letters"
        " (delivery_id, attempts, reason, error, fingerprint) VALUES (NEW.delivery_id, 1, 'failed', '', '');"
        " RETURN NEW; END $$"
    )
    shop.execute("CREATE TRIGGER die BEFORE INSERT ON hookledger.pending FOR EACH ROW EXECUTE FUNCTION die()")
    assert shop.run(begun).queued == 1
    assert (len(shop.pending()), shop.dead()) == (1, {})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Selection(Filter(state=State.PENDING)), "run by themselves"),
        (lambda: Selection(kind=Kind.FORGET), "for one handler"),
        (lambda: Selection(matching=Matching("add")), "for one handler"),
        (lambda: Options(rate=0), "above 0"),
        (lambda: Options(batch=0), "batch of 1"),
        (lambda: Options(max_failures=2), "between 0% and 100%"),
        (lambda: Options(max_failed=-1), "0 or more"),
    ],
)
def test_what_could_not_work_is_refused(make: Any, words: str) -> None:
    with pytest.raises(SetupError, match=words):
        make()


def test_a_record_gives_back_what_was_begun(shop: Shop) -> None:
    shop.facts("e1", fails=True)
    shop.work()
    selection = Selection(
        Filter.of_document(
            {"source": SHOP, "received_since": "2031-01-01T00:00:00+00:00", "outcome": "stale", "ids": [1]}
        ),
        include_settled=True,
        kind=Kind.BACKFILL,
        matching=Matching("add", SHOP, ("fact.*",), ("old",)),
    )
    options = Options(rate=2.5, canary=1, max_failures=0.5, most_pending=7, batch=3)
    plan = shop.plan(selection)
    begun = begin(shop.pool, SCHEMA, selection, plan, who="ann", reason="the bug of May", options=options)
    assert (begun.selection, begun.plan, begun.options) == (selection, plan, options)
    assert (begun.who, begun.reason, begun.state, begun.cursor_id) == ("ann", "the bug of May", ReplayState.RUNNING, 0)
    with pytest.raises(ReplayError, match="there is no replay 99"):
        find(shop.pool, SCHEMA, 99)
    assert begun.as_document()["filter"]["handler"]["handler"] == "add"


def test_what_is_pruned_between_the_look_and_the_row_is_not_made_pending(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a row in pending would be left of which there is no delivery, claimed for ever and never run."""
    ids = shop.facts("e1", "e2")
    shop.work()
    make_older(shop, 50, "e1", "e2")
    patience = Patience(lock=0.05, tries=2, pause=0.01)

    def prune_before(*given: Any) -> list[int]:
        prune(shop.pool, SCHEMA, Retention(payloads=30 * DAY, deliveries=30 * DAY), patience=patience)
        return reopen(*given)

    reopen = queueing._reopen
    monkeypatch.setattr(queueing, "_reopen", prune_before)
    assert shop.replay(of_ids(*ids)).queued == 2
    assert (
        shop.value(
            "SELECT count(*) FROM hookledger.pending WHERE delivery_id NOT IN (SELECT id FROM hookledger.deliveries)"
        )
        == 0
    )
    shop.work()
    assert shop.pending() == {}
    assert shop.mails() == 2


def test_a_process_that_is_stopped_in_a_batch_lets_go_and_does_it_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sender's copy of a dead letter must not wait until somebody wakes it."""
    (dead,) = shop.facts("e1", fails=True)
    shop.work()
    monkeypatch.setattr(brief, "LONGEST_SILENCE", "300ms")
    stopped: list[int] = []

    def revive_and_stop(connection: Connection, *given: Any) -> list[int]:
        revived = revive(connection, *given)
        if not stopped:
            stopped.append(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
            wait_until(lambda: not shop.value(f"SELECT count(*) FROM pg_stat_activity WHERE pid = {stopped[0]}"))
        return revived

    revive = queueing._revive
    monkeypatch.setattr(queueing, "_revive", revive_and_stop)
    assert shop.replay().queued == 1
    assert len(stopped) == 1
    assert shop.replayed() == [(1, dead)]
    assert set(shop.pending()) == {"e1"}
