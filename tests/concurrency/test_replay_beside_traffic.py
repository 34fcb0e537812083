"""A replay in the middle of live traffic, of the death of a worker, and of its own (B045, B055)."""

from __future__ import annotations

import random
import threading
from contextlib import ExitStack
from pathlib import Path

from sqlalchemy import create_engine

from hookledger.operate.replay import Options, Run, Selection, begin, find, make_plan, resume
from tests.concurrency.workers import Workplace
from tests.outcomes import document
from tests.processes import Child, wait_until

ROWS = ["row-0", "row-1", "row-2"]
OLD, LIVE = 300, 300
SCHEMA = "hookledger"

REPLAYER = """
import os
from hookledger import engine
from hookledger.operate.replay import Run, find
pool = engine.create(os.environ["DATABASE_URL"])
Run(pool, find(pool, "hookledger", int(os.environ["REPLAY"])), "hookledger").run()
"""


def bury_all(workplace: Workplace) -> None:
    workplace.execute(
        "WITH gone AS (DELETE FROM hookledger.pending RETURNING delivery_id) INSERT INTO hookledger.dead_letters"
        " (delivery_id, attempts, reason, error, fingerprint) SELECT delivery_id, 3, 'failed', 'x', 'f' FROM gone"
    )


def test_b055_beside_live_traffic_and_through_deaths_nothing_is_lost_or_doubled(
    workplace: Workplace, tmp_path: Path
) -> None:
    chance = random.Random("replay")
    workplace.make_totals(ROWS)
    sent = {f"old-{number}": chance.choice(ROWS) for number in range(OLD)}
    workplace.record(*[document(event, row, type="add") for event, row in sent.items()])
    bury_all(workplace)
    live = {f"live-{number}": chance.choice(ROWS) for number in range(LIVE)}
    script = tmp_path / "replayer.py"
    script.write_text(REPLAYER)
    engine = create_engine(workplace.url)
    plan = make_plan(engine, SCHEMA, Selection())
    assert plan.total == OLD
    replay = begin(engine, SCHEMA, Selection(), plan, who="ann", options=Options(most_pending=40, batch=20))

    def receive() -> None:
        for event, row in live.items():
            workplace.record(document(event, row, type="add"))

    def queued() -> int:
        return find(engine, SCHEMA, replay.id).queued

    receiving = threading.Thread(target=receive)
    with ExitStack() as stack:

        def start_worker() -> Child:
            return stack.enter_context(workplace.start("sync", "--slots", "2", "--batch", "10"))

        workers = [start_worker(), start_worker()]
        for worker in workers:
            worker.wait_for_output("worker ready")
        env = {"DATABASE_URL": workplace.url, "REPLAY": str(replay.id)}
        replayer = stack.enter_context(Child(script, env=env))
        receiving.start()
        wait_until(lambda: queued() >= 60)
        workers[0].kill()
        replayer.kill()
        at_death = queued()
        start_worker()
        ended = Run(engine, resume(engine, SCHEMA, replay.id), SCHEMA, patience=60.0).run()
        receiving.join()
        wait_until(lambda: not workplace.pending())
    assert at_death < OLD == ended.queued
    assert workplace.value("SELECT count(*) FROM hookledger.replayed") == OLD
    everything = {**sent, **live}
    expected = {row: list(everything.values()).count(row) for row in ROWS}
    assert workplace.totals() == expected
    assert workplace.outcomes_of("add") == dict.fromkeys(everything, "applied")
    workplace.expect_nothing_left()
    engine.dispose()
