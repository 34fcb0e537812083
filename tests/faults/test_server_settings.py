"""A server that takes no writes, or no connections, or ends what takes long: receivers answer 503, workers wait, and
all goes on by itself when it is over (D1, D10)."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from hookledger.embedded import EmbeddedPostgres
from tests.faults.conftest import Deploy
from tests.faults.deployment import Deployment
from tests.faults.roles import Role, role_for
from tests.processes import wait_until

INBOXES = ("sync", "asynchronous")


@pytest.fixture
def as_role(deploy: Deploy, database_url: str, request: pytest.FixtureRequest) -> Iterator[tuple[Deployment, Role]]:
    """A deployment whose processes have a role of their own."""
    inbox: str = getattr(request, "param", "sync")
    owner = deploy(database_url, inbox=inbox)
    with role_for(owner.ledger, database_url) as role:
        owner.use(role.url)
        role.allow()
        yield owner, role
        owner.close()


@pytest.mark.parametrize("inbox", INBOXES)
def test_b040_a_server_that_takes_no_writes_for_a_while(
    deploy: Deploy, own_server: EmbeddedPostgres, own_database_url: str, inbox: str
) -> None:
    """As a primary does that is about to be replaced: sessions stay, and each transaction that begins is read-only."""
    deployment = deploy(own_database_url, inbox=inbox)
    # Ours goes on writing.
    own = deployment.ledger.engine.execution_options(isolation_level="AUTOCOMMIT")

    def set_read_only(value: str) -> None:
        with own.connect() as connection:
            connection.execute(text(f"ALTER SYSTEM SET default_transaction_read_only = {value}"))
            connection.execute(text("SELECT pg_reload_conf()"))

    deployment.start()
    with deployment.sending() as senders:
        for _ in range(2):
            senders.at(20, lambda: set_read_only("on"))
            refused = senders.refused
            wait_until(lambda refused=refused: senders.refused > refused + 5)  # type: ignore[misc]
            set_read_only("off")
            senders.at(20, lambda: None)
        deployment.wait_for_progress(10)
    deployment.expect_balanced()


@pytest.mark.parametrize("as_role", INBOXES, indirect=True)
def test_connections_that_lead_to_the_old_primary_are_given_up(as_role: tuple[Deployment, Role]) -> None:
    """Sessions that were made while it took no writes never will: only new ones lead to the new primary."""
    deployment, role = as_role
    deployment.start()
    with deployment.sending() as senders:
        senders.at(20, lambda: None)
        deployment.wait_for_progress(10)
        role.alter("SET default_transaction_read_only = on")
        role.end_sessions()
        refused = senders.refused
        wait_until(lambda: senders.refused > refused + 5)
        wait_until(lambda: all("read-only transaction" in process.output for process in deployment.processes[1:]))
        role.alter("RESET default_transaction_read_only")
        senders.at(20, lambda: None)
        deployment.wait_for_progress(30)
    deployment.expect_balanced()


@pytest.mark.parametrize("as_role", INBOXES, indirect=True)
def test_connections_are_used_up_and_free_again(as_role: tuple[Deployment, Role]) -> None:
    deployment, role = as_role
    deployment.start()
    with deployment.sending() as senders:
        for _ in range(2):
            senders.at(20, lambda: role.alter("CONNECTION LIMIT 0"))
            role.end_sessions()
            refused = senders.refused
            wait_until(lambda refused=refused: senders.refused > refused + 5)  # type: ignore[misc]
            # One is enough for somebody to go on; then there is room for all.
            role.alter("CONNECTION LIMIT 1")
            wait_until(lambda: role.connections() == 1)
            role.alter("CONNECTION LIMIT -1")
            senders.at(20, lambda: None)
        deployment.wait_for_progress(10)
    deployment.expect_balanced()


def limits(deployment: Deployment) -> dict[str, str]:
    """Each time limit that the server knows."""
    names = [
        row.name
        for row in deployment.ledger.execute(
            "SELECT name FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout',"
            " 'idle_in_transaction_session_timeout', 'transaction_timeout', 'idle_session_timeout')"
        )
    ]
    assert len(names) >= 3
    return dict.fromkeys(names, "250ms")


@pytest.mark.parametrize("as_role", INBOXES, indirect=True)
def test_low_time_limits_of_the_role(as_role: tuple[Deployment, Role]) -> None:
    """Somebody holds what our statements need for longer than all the limits, again and again."""
    deployment, role = as_role
    for name, value in limits(deployment).items():
        role.alter(f"SET {name} = '{value}'")
    role.alter("SET TimeZone = 'Australia/Lord_Howe'")
    deployment.start()

    def cancelled() -> int:
        return sum(process.output.count(" timeout") for process in deployment.processes)

    with deployment.sending() as senders:
        senders.at(20, lambda: None)
        for tables in ("hookledger.deliveries", "hookledger.pending", "hookledger.effects, hookledger.resource_state"):
            with deployment.ledger.transaction() as other:
                other.execute(text(f"LOCK TABLE {tables}"))
                before = cancelled()
                wait_until(lambda before=before: cancelled() > before)  # type: ignore[misc]
            senders.at(10, lambda: None)
        deployment.wait_for_progress(10)
    deployment.expect_balanced()


def test_statements_are_cancelled_by_the_administrator_all_the_time(as_role: tuple[Deployment, Role]) -> None:
    deployment, role = as_role
    deployment.start()
    ending = threading.Event()

    def cancel() -> None:
        while not ending.is_set():
            deployment.ledger.execute(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = :name AND state = 'active'",
                name=role.name,
            )

    raining = threading.Thread(target=cancel)
    with deployment.sending() as senders:
        raining.start()
        try:
            senders.at(150, lambda: None)
            deployment.wait_for_progress(100)
        finally:
            ending.set()
            raining.join()
    deployment.expect_balanced(charged=True)


def test_what_a_role_lacks_for_a_while(as_role: tuple[Deployment, Role]) -> None:
    """The rights of the role are taken away and given back, as by a migration that made the tables anew."""
    deployment, role = as_role
    deployment.start()
    with deployment.sending() as senders:
        senders.at(20, lambda: None)
        deployment.ledger.execute(f'REVOKE ALL ON ALL TABLES IN SCHEMA hookledger FROM "{role.name}"')
        refused = senders.refused
        wait_until(lambda: senders.refused > refused + 5)
        role.allow()
        senders.at(20, lambda: None)
        deployment.wait_for_progress(10)
    deployment.expect_balanced()
