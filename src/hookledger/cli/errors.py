"""How an error ends the process: one sentence on standard error, and an exit status that scripts can use."""

from __future__ import annotations

import sys
import traceback
from typing import NoReturn

import typer

from hookledger.cli.options import chosen
from hookledger.errors import DatabaseUnreachable, HookledgerError, SchemaError, SetupError
from hookledger.operate.masking import without_password as without_password

DONE = 0
FAILED = 1
WRONG_USE = 2
NOTHING = 3
PARTLY = 5
UNHEALTHY = 6
INTERRUPTED = 130

LONGEST_SENTENCE = 600


class WrongUse(HookledgerError):
    """The command was called in a way that cannot work. The message says what to write instead."""


def one_line(text: str) -> str:
    """The text on one line, without control characters, which a sender may have put there."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """The text with U+FFFD for what would move the cursor or change the terminal."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)


def say(text: str) -> None:
    """Write a message for the person at the terminal to standard error."""
    print(text, file=sys.stderr, flush=True)


def sentence(error: BaseException) -> str:
    """What happened and what to do, without a traceback and without a password."""
    if isinstance(error, HookledgerError):
        text = str(error)
    elif _is_from_database(error):
        text = _of_database(error)
    elif isinstance(error, OSError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error} (--debug shows where)"
    text = one_line(without_password(text))
    return text if len(text) <= LONGEST_SENTENCE else f"{text[:LONGEST_SENTENCE]} ..."


def status_of(error: BaseException) -> int:
    """2 if the command could never work as it was given, 1 if it was tried and failed.

    A supervisor can so tell a worker worth restarting from one that needs a person.
    """
    tried = isinstance(error, DatabaseUnreachable | SchemaError)
    given_wrongly = isinstance(error, WrongUse | SetupError)
    return WRONG_USE if given_wrongly and not tried else FAILED


def report(error: BaseException) -> int:
    """Tell of an error on standard error, and give the exit status."""
    if chosen.debug:
        traceback.print_exception(error)
    say(f"error: {sentence(error)}")
    return status_of(error)


def report_usage(error: typer.BadParameter) -> int:
    """Tell of arguments that the command does not take."""
    message = one_line(error.format_message()).rstrip(".")
    context = error.ctx
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    say(f"error: {message[:1].lower()}{message[1:]}{hint}")
    return WRONG_USE


def unhealthy(reason: str) -> NoReturn:
    """End the command because what it looked at is not as it should be."""
    say(f"unhealthy: {reason}")
    raise typer.Exit(UNHEALTHY)


def _is_from_database(error: BaseException) -> bool:
    return any(kind.__module__.partition(".")[0] in ("sqlalchemy", "psycopg") for kind in type(error).__mro__)


def _of_database(error: BaseException) -> str:
    original = getattr(error, "orig", None) or error
    # PostgreSQL's message may go on with DETAIL, LINE and HINT; the first line names the fault.
    message = without_password(str(original)).strip()
    first = message.splitlines()[0] if message else type(original).__name__
    state = getattr(original, "sqlstate", None) or ""
    if state == "42501":
        return (
            f"the role lacks a right: {first}; run the command as the owner of the tables, or, if receivers and "
            "workers lack it too, grant what `hookledger db grants ROLE` prints"
        )
    if state in ("42P01", "3F000"):
        return f"the ledger is not there: {first}; run `hookledger db upgrade`"
    if state == "55P03":
        return (
            f"somebody else has locked what this needs: {first}; run it again once that has ended; `hookledger doctor` "
            "shows transactions that have been open for long"
        )
    if state == "57014":
        return f"the database took too long: {first}; run it again when the database has less to do"
    if not state and type(original).__name__ == "OperationalError":
        return f"PostgreSQL does not answer: {' '.join(message.split())}; start the server or correct DATABASE_URL"
    return f"PostgreSQL refused: {first}"
