"""Which SQL ends the transaction of a handler."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger.worker.ending import ending


@pytest.mark.parametrize(
    "sql",
    [
        "COMMIT",
        "commit and chain",
        "  \n\tCommit;",
        "END",
        "end transaction",
        "ABORT",
        "ROLLBACK",
        "rollback work",
        "rollback and no chain",
        "BEGIN",
        "START TRANSACTION READ ONLY",
        "start\n transaction",
        "PREPARE TRANSACTION 'x'",
        "COMMIT PREPARED 'x'",
        "-- said so\nCOMMIT",
        "/* and so */ COMMIT",
        "SELECT 1; COMMIT",
        "SELECT ';' ; /* ; */ ROLLBACK ; SELECT 1",
        "RELEASE hookledger_handler",
        "release savepoint hookledger_handler",
        "release savepoint hookledger_handler_12",
        "ROLLBACK TO SAVEPOINT hookledger_handler",
        "rollback work to hookledger_handler",
    ],
)
def test_what_ends_it(sql: str) -> None:
    assert ending(sql) is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "",
        ";;",
        "SELECT CASE WHEN a THEN b END FROM t",
        "UPDATE commits SET rollback = 'begin; commit'",
        'SELECT "commit" FROM "end"',
        "SELECT 'it''s; commit'",
        "SAVEPOINT mine",
        "ROLLBACK TO mine",
        "ROLLBACK TO SAVEPOINT mine",
        "rollback transaction to savepoint mine",
        "RELEASE mine",
        "PREPARE plan AS SELECT 1",
        "DO $$ BEGIN PERFORM 1; END $$",
        "DO $body$ BEGIN COMMIT; END $body$",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END",
        "INSERT INTO t VALUES ('-- '); SELECT 'commit'",
        "-- commit\nSELECT 1",
        "/* ; commit */ SELECT 1",
        "LOCK TABLE t; COMMENT ON TABLE t IS 'end'",
        "SELECT started, committed, ending FROM t",
    ],
)
def test_what_does_not(sql: str) -> None:
    assert ending(sql) is None


@given(st.text())
def test_any_text_is_read(sql: str) -> None:
    found = ending(sql)
    assert found is None or len(found) <= 60
