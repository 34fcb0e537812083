"""Makes the database hold up chosen events, so that a test decides when they go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests.ledger import Ledger
from tests.processes import wait_until

KEY = 4711


class Gate:
    """Holds up the insertion of the event `gate` while it is closed.

    Args:
        url: of the database with the ledger; a trigger is made in it.
    """

    def __init__(self, url: str) -> None:
        self._ledger = Ledger(url)
        self._engine = create_engine(url, poolclass=NullPool)
        self._ledger.run(
            "CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN PERFORM pg_advisory_xact_lock_shared({KEY}); RETURN NEW; END $$"
        )
        self._ledger.run(
            "CREATE TRIGGER wait_at_gate BEFORE INSERT ON deliveries FOR EACH ROW"
            " WHEN (NEW.event_id = 'gate') EXECUTE FUNCTION wait_at_gate()"
        )

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Closed until the end of the block."""
        with self._engine.begin() as connection:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({KEY})"))
            yield

    def wait_for_somebody(self) -> None:
        """Return when the event `gate` has come to the gate."""
        waiting = f"SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = {KEY} AND NOT granted"
        wait_until(lambda: self._ledger.run(waiting))
