"""A shop whose deliveries are settled, dead or scheduled as a test wants it, and whose handlers can be mended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, text

from hookledger import Delivery, Inbox, Reject, Retry
from hookledger import engine as engines
from hookledger.operate.filters import Filter
from hookledger.operate.replay import Options, Plan, Replay, Run, Selection, begin, make_plan
from hookledger.worker import Worker, WorkerSettings
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop

SCHEMA = "hookledger"
HOUR = 3600.0

_MAIL = text("INSERT INTO mails (event_id) VALUES (:event)")


class Shop(Ledger):
    """A ledger with two handlers: `add` counts facts and sends a mail for each, `save` keeps things. Its workers do not
    revive by themselves what was ignored.

    A document that says `fails` is given up until the handlers are mended; one that says `waits` waits for an hour.

    Args:
        url: of the database.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url
        self.execute("CREATE TABLE mails (event_id text NOT NULL)")
        self.pool = engines.create(url, pool_size=8)
        self.mended = False
        self.inbox = self.make_inbox()

    def make_inbox(self, **names: str) -> Inbox:
        """An inbox with the two handlers, under these names."""
        inbox = inbox_of_shop()
        inbox.accumulate(SHOP, "fact.*", name=names.get("add", "add"))(self.add)
        deleted = lambda delivery: bool(delivery.data.get("deleted"))  # noqa: E731
        inbox.snapshot(SHOP, "thing.*", name=names.get("save", "save"), deleted=deleted)(self.save)
        return inbox

    def add(self, delivery: Delivery, tx: Connection) -> dict[str, int]:
        """Add 5, and queue a mail."""
        tx.execute(_MAIL, {"event": delivery.event_id})
        self.fail(delivery)
        return {"total": 5}

    def save(self, delivery: Delivery, tx: Connection) -> dict[str, Any]:
        """Keep the version."""
        self.fail(delivery)
        return {"is": delivery.data["version"]}

    def fail(self, delivery: Delivery) -> None:
        """Fail as the document says."""
        if self.mended:
            return
        if delivery.data.get("fails"):
            raise Reject("it is broken")
        if delivery.data.get("waits"):
            raise Retry("later", after=HOUR)

    def facts(self, *ids: str, **fields: Any) -> list[int]:
        """Record facts."""
        return self.record(*[document(id, "r", type="fact.added", **fields) for id in ids])

    def thing(self, id: str, version: int, **fields: Any) -> int:
        """Record a snapshot of the thing `t`."""
        return self.record(document(id, "t", version, **fields))[0]

    def work(self, inbox: Inbox | None = None, **settings: Any) -> None:
        """Run a worker until nothing is due."""
        worker = Worker(inbox or self.inbox, self.pool, WorkerSettings(**{"slots": 1, "revive_ignored": 0, **settings}))
        asyncio.run(worker.run_until_idle())

    @contextmanager
    def working(self, **settings: Any) -> Iterator[None]:
        """A worker that goes on during the block."""
        worker = Worker(
            self.inbox,
            self.pool,
            WorkerSettings(**{"slots": 2, "shortest_poll": 0.01, "longest_poll": 0.05, **settings}),
        )
        thread = threading.Thread(target=lambda: asyncio.run(worker.run()))
        thread.start()
        try:
            yield
        finally:
            worker.stop()
            thread.join()

    def plan(self, selection: Selection | None = None, *, inbox: Inbox | None = None) -> Plan:
        """The plan of a replay."""
        return make_plan(self.pool, SCHEMA, selection or Selection(), inbox=inbox)

    def begin(self, selection: Selection | None = None, **options: Any) -> Replay:
        """Begin a replay."""
        selection = selection or Selection()
        return begin(self.pool, SCHEMA, selection, self.plan(selection), who="ann", options=Options(**options))

    def run(self, replay: Replay, **more: Any) -> Replay:
        """Run a replay to its end."""
        return Run(self.pool, replay, SCHEMA, **{"patience": 0.0, **more}).run()

    def replay(self, selection: Selection | None = None, **options: Any) -> Replay:
        """Begin a replay and run it to its end, without waiting for a worker."""
        return self.run(self.begin(selection, **{"most_pending": 0, **options}))

    def replayed(self) -> list[tuple[int, int]]:
        """Which replay has made which delivery pending."""
        query = "SELECT replay_id, delivery_id FROM hookledger.replayed ORDER BY 1, 2"
        return [(int(row[0]), int(row[1])) for row in self.execute(query)]

    def total(self) -> int:
        """What `add` has added."""
        found = self.states("add").get("r")
        return 0 if found is None else int(found.state["total"])

    def mails(self) -> int:
        """How many mails were queued."""
        return int(self.value("SELECT count(*) FROM mails"))

    def bury_all(self) -> None:
        """Make dead letters of all that is pending, as a worker does that gives up."""
        self.execute(
            "WITH gone AS (DELETE FROM hookledger.pending RETURNING delivery_id) INSERT INTO hookledger.dead_letters"
            " (delivery_id, attempts, reason, error, fingerprint) SELECT delivery_id, 3, 'failed', 'x', 'f' FROM gone"
        )

    def close(self) -> None:
        """Close the connections."""
        self.pool.dispose()
        self.engine.dispose()


def of_ids(*ids: int, settled: bool = True, **more: Any) -> Selection:
    """A selection of these deliveries."""
    return Selection(Filter(ids=ids), include_settled=settled, **more)
