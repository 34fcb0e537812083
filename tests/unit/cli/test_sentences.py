"""One sentence for every error, without passwords and without what would move the cursor."""

from __future__ import annotations

import pytest
from psycopg import errors as postgres
from sqlalchemy.exc import OperationalError, ProgrammingError

from hookledger.cli.errors import WrongUse, one_line, printable, sentence, status_of, without_password
from hookledger.errors import DatabaseUnreachable, HookledgerError, SchemaError, SecretError, SetupError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://app:pa55@host/db", "postgresql://app:***@host/db"),
        ("at postgresql+psycopg://app:p@ss@host/db?x=1 now", "at postgresql+psycopg://app:***@host/db?x=1 now"),
        ("postgresql://:pa55@host/db", "postgresql://:***@host/db"),
        ("host=h password=pa55 user=u", "host=h password=*** user=u"),
        ("host=h password = 'pa 55' user=u", "host=h password = *** user=u"),
        ("postgresql://h/db?password=pa55&sslmode=require", "postgresql://h/db?password=***&sslmode=require"),
        ("postgresql://user:password@host/database", "postgresql://user:password@host/database"),
        ("nobody@host, http://127.0.0.1:8000/x", "nobody@host, http://127.0.0.1:8000/x"),
    ],
)
def test_passwords_are_left_out(text: str, shown: str) -> None:
    assert without_password(text) == shown


def test_control_characters_are_shown_as_unknown() -> None:
    assert printable("a\x1b[31mb\u202ec") == "a\ufffd[31mb\ufffdc"
    assert one_line(" two\n  lines\tand\x00 more ") == "two lines and\ufffd more"
    assert printable("☕ é") == "☕ é"


def database_error(kind: type[Exception], text: str) -> ProgrammingError:
    return ProgrammingError("SELECT secret_column", {"secret": "value"}, kind(text))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SetupError("say this"), ["say this"]),
        (database_error(postgres.InsufficientPrivilege, "permission denied for table x"), ["db grants", "table x"]),
        (database_error(postgres.UndefinedTable, 'relation "x" does not exist\nLINE 1: SELECT'), ["db upgrade"]),
        (database_error(postgres.QueryCanceled, "statement timeout"), ["took too long"]),
        (database_error(postgres.DivisionByZero, "division by zero"), ["PostgreSQL refused: division by zero"]),
        (
            OperationalError("SELECT 1", {}, postgres.OperationalError("connection failed: at 1.2.3.4\nIs it there?")),
            ["does not answer", "Is it there?", "DATABASE_URL"],
        ),
        (ValueError("one\ntwo"), ["ValueError: one two", "--debug"]),
        (FileNotFoundError(2, "No such file", "x.json"), ["x.json"]),
    ],
)
def test_an_error_in_one_sentence(error: Exception, words: list[str]) -> None:
    told = sentence(error)
    for word in words:
        assert word in told
    assert "\n" not in told
    assert "secret" not in told
    assert "LINE 1" not in told


def test_a_long_error_is_cut() -> None:
    assert len(sentence(ValueError("x" * 5000))) < 700


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (WrongUse("x"), 2),
        (SetupError("x"), 2),
        (SecretError("x"), 2),
        (DatabaseUnreachable("x"), 1),
        (SchemaError("x"), 1),
        (HookledgerError("x"), 1),
        (ValueError("x"), 1),
    ],
)
def test_what_may_go_away_by_itself_is_1(error: Exception, status: int) -> None:
    assert status_of(error) == status
