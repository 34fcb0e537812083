"""PostgreSQL is restarted while deliveries flow, at every stage of their way (D1, D6, D10)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from hookledger.embedded import EmbeddedPostgres
from hookledger.embedded.server import StopMode
from tests.faults.books import Event
from tests.faults.conftest import Deploy
from tests.faults.deployment import Deployment
from tests.processes import wait_until

# Where a process is held up: (table, when, a condition on the row).
STAGES = {
    "the receiver's statement": ("hookledger.deliveries", "BEFORE INSERT", "true"),
    "the receiver's commit": ("hookledger.deliveries", "DEFERRED INSERT", "true"),
    "the claim": ("hookledger.pending", "BEFORE UPDATE", "NEW.attempts > OLD.attempts"),
    "the commit of the claim": ("hookledger.pending", "DEFERRED UPDATE", "NEW.attempts > OLD.attempts"),
    "a handler": ("entries", "BEFORE INSERT", "true"),
    "settling": ("hookledger.effects", "BEFORE INSERT", "true"),
    "the commit": ("hookledger.effects", "DEFERRED INSERT", "true"),
}
FIRST_KEY = 5000
"""Of the advisory locks, of which each stage has one."""


def make_gates(deployment: Deployment) -> None:
    """Let whoever comes to a stage wait while somebody has its lock."""
    for key, (table, when, condition) in enumerate(STAGES.values(), FIRST_KEY):
        timing, _, action = when.partition(" ")
        deferred = timing == "DEFERRED"
        deployment.ledger.execute(
            f"""
            CREATE FUNCTION gate_{key}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF {condition} THEN PERFORM pg_advisory_xact_lock_shared({key}); END IF;
                RETURN NEW;
            END $$
            """
        )
        deployment.ledger.execute(
            f"CREATE {'CONSTRAINT ' if deferred else ''}TRIGGER gate_{key} {'AFTER' if deferred else timing} {action}"
            f" ON {table} {'DEFERRABLE INITIALLY DEFERRED' if deferred else ''}"
            f" FOR EACH ROW EXECUTE FUNCTION gate_{key}()"
        )


@contextmanager
def closed(url: str, key: int) -> Iterator[None]:
    """A gate that is closed until the end of the block, or of the server."""
    engine = create_engine(url, poolclass=NullPool)
    with suppress(DBAPIError), engine.connect() as connection:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({key})"))
        yield


@pytest.mark.parametrize(("mode", "inbox"), [("fast", "sync"), ("immediate", "asynchronous")])
def test_b040_a_restart_at_every_stage(
    deploy: Deploy, own_server: EmbeddedPostgres, own_database_url: str, mode: StopMode, inbox: str
) -> None:
    deployment = deploy(own_database_url, inbox=inbox)
    make_gates(deployment)
    deployment.start()
    with deployment.sending() as senders:
        for key in range(FIRST_KEY, FIRST_KEY + len(STAGES)):
            with closed(own_database_url, key):
                waiting = f"SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = {key} AND NOT granted"
                wait_until(lambda waiting=waiting: deployment.ledger.execute(waiting))  # type: ignore[misc]
                own_server.restart(mode)
            senders.at(3, lambda: None)
            deployment.wait_for_progress()
        senders.at(20, partial(own_server.restart, mode))
    wait_until(lambda: not deployment.ledger.pending())
    own_server.restart(mode)  # while all are idle
    deployment.send(*[Event(f"last-{number}", "r0", 10_000 + number) for number in range(5)])
    deployment.expect_balanced()
