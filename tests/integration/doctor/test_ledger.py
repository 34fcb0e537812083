"""What `hookledger doctor` says of the ledger and the role: and what it says to do mends it (D13)."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from hookledger import Inbox, migrate
from hookledger.doctor import Finding, Limits, Severity, examine, is_healthy
from hookledger.doctor.examine import NAMES
from tests.integration.doctor.conftest import Examine, MakeEngine, Role

ALWAYS = {"client-check", "partitions", "transactions"}
"""Checks that have a note for a new database on a server as it comes: transactions of others cannot be seen."""


def one(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


def test_a_ledger_in_order_is_healthy(found: Examine) -> None:
    findings = found()
    assert is_healthy(findings)
    assert {finding.check for finding in findings} <= ALWAYS
    assert set(NAMES) > ALWAYS


@pytest.mark.parametrize(
    ("taken", "named"),
    [
        ("INSERT ON hookledger.effects", "lacks INSERT on hookledger.effects"),
        ("UPDATE, DELETE ON hookledger.pending", "lacks UPDATE, DELETE on hookledger.pending"),
        ("USAGE ON SEQUENCE hookledger.payloads_id_seq", "lacks USAGE on hookledger.payloads_id_seq"),
        ("USAGE ON SCHEMA hookledger", "lacks USAGE on the schema 'hookledger'"),
    ],
)
def test_a_right_that_is_missing_is_named_with_the_grant_that_mends_it(
    found: Examine, role: Role, taken: str, named: str
) -> None:
    role.run(f"REVOKE {taken} FROM {role.name}")
    finding = one(found("rights"))
    assert finding.severity is Severity.ERROR
    assert named in finding.what
    grant = re.search(r"run (GRANT .*), or all", finding.do)
    assert grant is not None
    role.run(grant[1])
    assert is_healthy(found())


def test_a_check_that_fails_does_not_hide_the_others(found: Examine, role: Role) -> None:
    role.run(
        f"REVOKE ALL ON ALL TABLES IN SCHEMA hookledger FROM {role.name}",
        f"REVOKE USAGE ON SCHEMA hookledger FROM {role.name}",
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'hookledger.redeliveries_delivery_id_idx'::regclass",
    )
    findings = found(settings={"default_transaction_isolation": "serializable"})
    checks = {finding.check for finding in findings}
    assert {"rights", "schema", "pending", "indexes", "isolation"} <= checks
    lacking = [finding.what for finding in findings if finding.check == "rights"]
    assert len(lacking) > 8
    (schema,) = [finding for finding in findings if finding.check == "schema"]
    assert "could not be looked at" in schema.what
    assert [finding.severity for finding in findings] == sorted(
        [finding.severity for finding in findings], key=list(Severity).index
    )


def test_a_check_that_takes_too_long_does_not_hide_the_others(found: Examine, role: Role) -> None:
    role.run("INSERT INTO hookledger.dead_letters VALUES (1, now(), 3, 'failed', 'x', 'f')")
    engine = create_engine(role.url.set(username="postgres", password=None), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("LOCK TABLE hookledger.pending"))
        findings = found(limits=Limits(check=timedelta(milliseconds=100)))
    pending, dead = [next(each for each in findings if each.check == name) for name in ("pending", "dead-letters")]
    assert "could not be looked at" in pending.what
    assert "1 delivery was" in dead.what


def test_a_schema_that_is_missing(empty_database_url: str, make_engine: MakeEngine) -> None:
    engine = make_engine(empty_database_url)
    finding = one([each for each in examine(None, engine, schema="my hooks") if each.severity is Severity.ERROR])
    assert finding.check == "schema"
    assert "there is no schema 'my hooks'" in finding.what
    assert finding.do == "run `hookledger db upgrade --schema 'my hooks'`"
    migrate.upgrade(engine, schema="my hooks")
    assert is_healthy(examine(None, engine, schema="my hooks"))


@pytest.mark.parametrize(
    ("revision", "what", "do"),
    [
        ("hookledger_0001", "older than this hookledger", "run `hookledger db upgrade`"),
        ("hookledger_9999", "newer than this hookledger", "install the version of hookledger that made it"),
    ],
)
def test_a_schema_that_is_older_or_newer(found: Examine, role: Role, revision: str, what: str, do: str) -> None:
    role.run(f"UPDATE hookledger.schema_version SET version_num = '{revision}'")
    finding = one(found("schema"))
    assert finding.severity is Severity.ERROR
    assert what in finding.what
    assert finding.do.startswith(do)


def test_a_table_that_was_changed_by_hand(found: Examine, role: Role) -> None:
    role.run("DROP INDEX hookledger.dead_letters_died_at_idx")
    finding = one(found("tables"))
    assert finding.severity is Severity.ERROR
    assert "dead_letters_died_at_idx" in finding.what


@pytest.mark.parametrize(
    ("index", "severity"), [("pending_due_at_delivery_id_idx", Severity.WARNING), ("effects_pkey", Severity.ERROR)]
)
def test_an_index_that_is_invalid(found: Examine, role: Role, index: str, severity: Severity) -> None:
    role.run(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'hookledger.{index}'::regclass")
    finding = one(found("indexes"))
    assert finding.severity is severity
    assert finding.do == f"REINDEX INDEX CONCURRENTLY hookledger.{index}"
    autocommit = create_engine(
        role.url.set(username="postgres", password=None), poolclass=NullPool, isolation_level="AUTOCOMMIT"
    )
    with autocommit.connect() as connection:
        connection.execute(text(finding.do))
    assert found("indexes") == []


def test_an_inbox_without_sources_or_handlers(found: Examine) -> None:
    findings = found(inbox=Inbox())
    assert {finding.check for finding in findings if finding.severity is not Severity.NOTE} == {"secrets", "handlers"}


def test_a_source_without_a_handler(found: Examine, inbox: Inbox) -> None:
    assert found("handlers") == []
    inbox.sources["other"] = inbox.sources["shop"]
    finding = one(found("handlers"))
    assert finding.severity is Severity.NOTE
    assert "from other" in finding.what


def test_a_database_that_does_not_answer(make_engine: MakeEngine, inbox: Inbox) -> None:
    engine = make_engine("postgresql://app:hidden-one@127.0.0.1:1/ledger")
    finding = one(examine(inbox, engine))
    assert (finding.severity, finding.check) == (Severity.ERROR, "database")
    assert "127.0.0.1:1" in finding.what
    assert "hidden-one" not in str(finding)
