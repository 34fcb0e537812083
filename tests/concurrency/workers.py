"""Real worker processes on a ledger, and what their handlers did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import text

from tests.concurrency.hooks import GATE, TABLES
from tests.end_to_end.command import COMMAND
from tests.outcomes import Ledger, document
from tests.processes import Child, wait_until

INBOXES = ("sync", "asynchronous")
ROOT = Path(__file__).parents[2]


class Workplace(Ledger):
    """A ledger whose deliveries are worked on by processes.

    Args:
        url: of its database; the tables that the handlers write are made in it.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url
        for table in TABLES:
            self.execute(table)

    def start(self, inbox: str, *options: str, release: Path | None = None, module: str = "hooks") -> Child:
        """Start a worker, and do not wait for it.

        Args:
            inbox: one of INBOXES.
            options: of the command.
            release: the file that events of the type `block` wait for.
            module: where the inbox is, in this folder.
        """
        env = {"DATABASE_URL": self.url, **({} if release is None else {"TEST_RELEASE": str(release)})}
        return Child(COMMAND, "worker", f"tests.concurrency.{module}:{inbox}", *options, env=env, cwd=ROOT)

    def send(self, type: str, *ids: str, resource: str | None = None, **fields: Any) -> list[int]:
        """Record events of a type; the ids of their deliveries."""
        return self.record(*[document(id, resource, type=type, **fields) for id in ids])

    @property
    def runs(self) -> int:
        """How many runs of handlers have begun, for the types that count them."""
        return int(self.value("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM runs"))

    def wait_for_run(self, number: int = 1) -> None:
        """Return when the handler runs for that time."""
        wait_until(lambda: self.runs >= number)

    def settled(self) -> int:
        """How many outcomes there are."""
        return int(self.value("SELECT count(*) FROM hookledger.effects"))

    def attempts(self, handler: str = "note") -> dict[str, int]:
        """By event, the attempt in which the handler wrote its row."""
        rows = self.execute("SELECT event_id, attempt FROM applied WHERE handler = :handler", handler=handler)
        found = {row.event_id: int(row.attempt) for row in rows}
        assert len(found) == len(rows), "a row is there twice"
        return found

    def totals(self) -> dict[str, int]:
        """What was added, by row."""
        return {row.resource: int(row.total) for row in self.execute("SELECT resource, total FROM totals")}

    def make_totals(self, names: list[str]) -> None:
        """Make rows to add to."""
        self.execute("INSERT INTO totals SELECT unnest(CAST(:names AS text[])), 0", names=names)

    @contextmanager
    def closed_gate(self) -> Iterator[None]:
        """Hold up events of the type `wait` until the end of the block."""
        with self.transaction() as connection:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({GATE})"))
            yield

    def expect_nothing_left(self) -> None:
        """See that every delivery is settled, and none was given up."""
        assert self.dead() == {}
        assert self.pending() == {}
        self.check()
