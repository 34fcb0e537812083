"""What `hookledger doctor` says of the server, its settings and what lies between."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.pool import NullPool

from hookledger.doctor import Limits, Severity, examine
from hookledger.embedded import EmbeddedPostgres
from tests.databases import query
from tests.integration.doctor.bouncer import bouncer
from tests.integration.doctor.conftest import Examine, MakeEngine, Role
from tests.processes import wait_until


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("statement_timeout", Severity.WARNING),
        ("lock_timeout", Severity.WARNING),
        ("idle_in_transaction_session_timeout", Severity.NOTE),
    ],
)
def test_a_time_limit_that_is_shorter_than_a_handler_may_take(
    found: Examine, role: Role, name: str, severity: Severity
) -> None:
    role.run(f"ALTER ROLE {role.name} SET {name} = '40s'")
    assert found("time-limits") == []
    role.run(f"ALTER ROLE {role.name} SET {name} = '20s'")
    (finding,) = found("time-limits")
    assert finding.severity is severity
    assert f"{name} is 20 seconds" in finding.what
    assert found("time-limits", limits=Limits(handler=timedelta(seconds=10))) == []


def test_another_level_of_isolation(found: Examine) -> None:
    assert found("isolation") == []
    (finding,) = found("isolation", {"default_transaction_isolation": "serializable"})
    assert finding.severity is Severity.NOTE
    assert "'serializable'" in finding.what


def test_whether_the_server_watches_its_clients(found: Examine) -> None:
    (finding,) = found("client-check")
    assert finding.severity is Severity.NOTE
    assert found("client-check", {"client_connection_check_interval": "10s"}) == []


def test_transactions_that_are_read_only(found: Examine) -> None:
    assert found("read-only") == []
    (finding,) = found("read-only", {"default_transaction_read_only": "on"})
    assert finding.severity is Severity.ERROR
    assert "default_transaction_read_only" in finding.do


def test_commits_that_do_not_wait_for_the_disk(found: Examine) -> None:
    assert found("durability") == []
    assert found("durability", {"synchronous_commit": "local"}) == []
    (finding,) = found("durability", {"synchronous_commit": "off"})
    assert finding.severity is Severity.ERROR


def test_a_server_that_keeps_nothing_safe(own_server: EmbeddedPostgres, own_database_url: str) -> None:
    changed = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "track_counts": "on"}
    url = make_url(own_database_url).set(drivername="postgresql+psycopg")
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    before = {finding.check for finding in examine(None, engine)}
    with engine.connect() as connection:
        for name, value in changed.items():
            connection.execute(text(f"ALTER SYSTEM SET {name} = {value}"))
        connection.execute(text("ALTER TABLE hookledger.pending SET (autovacuum_enabled = false)"))
        connection.execute(text("SELECT pg_reload_conf()"))
    wait_until(lambda: query(str(url.render_as_string(False)), "SHOW autovacuum") == "off")
    findings = [finding for finding in examine(None, engine) if finding.check not in before]
    told = [(finding.check, finding.severity, finding.what.partition(" ")[0]) for finding in findings]
    assert told == [
        ("durability", Severity.ERROR, "fsync"),
        ("durability", Severity.ERROR, "full_page_writes"),
        ("vacuum", Severity.WARNING, "autovacuum"),
        ("vacuum", Severity.WARNING, "autovacuum"),
    ]
    assert findings[-1].do == "ALTER TABLE hookledger.pending RESET (autovacuum_enabled)"


def test_a_database_of_another_encoding(engine: Engine) -> None:
    url = make_url(engine.url).set(database="of_another_encoding")
    autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
    with autocommit.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {url.database} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"))
        try:
            findings = examine(None, create_engine(url, poolclass=NullPool), only=["encoding"])
        finally:
            connection.execute(text(f"DROP DATABASE {url.database} WITH (FORCE)"))
    (finding,) = findings
    assert finding.severity is Severity.ERROR
    assert "LATIN1" in finding.what


@pytest.mark.parametrize(("hours", "words"), [(1, "60 minutes ahead of"), (-1, "60 minutes behind")])
def test_the_clock_of_this_machine(found: Examine, hours: int, words: str) -> None:
    assert found("clock") == []
    (finding,) = found("clock", now=lambda: time.time() + hours * 3600)
    assert finding.severity is Severity.WARNING
    assert words in finding.what


def test_a_clock_that_a_slow_network_makes_uncertain(found: Examine) -> None:
    """A minute between question and answer says nothing of a clock that is half a minute off."""
    ticks = iter(range(0, 10_000, 60))
    began = time.time()
    assert found("clock", now=lambda: began + next(ticks)) == []


def test_a_transaction_that_is_open_for_long(found: Examine, role: Role, engine: Engine) -> None:
    short = Limits(open_transaction=timedelta(0))
    role.run(f"GRANT pg_read_all_stats TO {role.name}")
    with engine.connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        pid = connection.execute(
            text("SELECT pg_backend_pid() FROM hookledger.pending RIGHT JOIN (SELECT) AS one ON true")
        )
        mine = f"the transaction of process {pid.scalar_one()} "
        assert not [finding for finding in found("transactions") if mine in finding.what]
        (finding,) = [finding for finding in found("transactions", limits=short) if mine in finding.what]
        assert finding.severity is Severity.WARNING
        assert "pg_terminate_backend" in finding.do
    assert not [finding for finding in found("transactions", limits=short) if mine in finding.what]


def test_transactions_that_cannot_be_looked_at(found: Examine, role: Role, engine: Engine) -> None:
    with engine.connect():
        (finding,) = found("transactions")
        assert finding.severity is Severity.NOTE
        assert "pg_read_all_stats" in finding.do
        role.run(f"GRANT pg_read_all_stats TO {role.name}")
        assert found("transactions") == []


def test_connections_that_are_used_up(found: Examine, role: Role, engine: Engine) -> None:
    assert found("connections") == []
    role.run(f"ALTER ROLE {role.name} CONNECTION LIMIT 3")
    few = Limits(connections=0.3)
    (finding,) = found("connections", limits=few)
    assert finding.severity is Severity.WARNING
    assert "of 3 connections are in use (CONNECTION LIMIT of the role)" in finding.what
    role.run(f"ALTER DATABASE {engine.url.database} CONNECTION LIMIT 4")
    assert len(found("connections", limits=few)) == 2
    assert len(found("connections", limits=Limits(connections=0))) == 3


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_pooler(mode: str, database_url: str, make_engine: MakeEngine, open_folder: Path) -> None:
    def told(url: str) -> list[tuple[str, Severity]]:
        findings = examine(None, make_engine(url), only=["pooler", "hints"])
        return [(each.check, each.severity) for each in findings]

    assert told(database_url) == []
    with bouncer(database_url, mode, open_folder) as url:
        if mode == "session":
            assert told(url) == []
            return
        without = told(f"{url}?prepare_threshold=none")
        assert without == [("pooler", Severity.NOTE), ("hints", Severity.NOTE)]
        # A pgbouncer that knows prepared statements, from 1.22 on, loses none.
        with_prepared = told(url)
        assert with_prepared in ([("pooler", Severity.ERROR), ("hints", Severity.NOTE)], without)
