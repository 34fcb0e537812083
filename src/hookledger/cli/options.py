"""Options that several commands share, and what was chosen for the whole run."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

import typer


class LogLevel(enum.StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LARGEST_NUMBER = 2**63 - 1
"""Of what has a number in the ledger: a bigint."""


class LogFormat(enum.StrEnum):
    """How a log record is written."""

    PLAIN = "plain"
    JSON = "json"


@dataclass
class Chosen:
    """What holds for the whole run, wherever on the command line it was given."""

    debug: bool = False
    log_level: LogLevel | None = None

    def forget(self) -> None:
        """Begin another run in the same process."""
        self.debug, self.log_level = False, None


chosen = Chosen()


def _choose_debug(value: bool) -> bool:
    chosen.debug = chosen.debug or value
    return value


def _choose_log_level(value: LogLevel | None) -> LogLevel | None:
    chosen.log_level = value or chosen.log_level
    return value


def help_if_alone(context: typer.Context) -> None:
    """Show the help of a group that was called without a command, which is wrong use."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)


Debug = Annotated[
    bool,
    typer.Option("--debug", callback=_choose_debug, help="Show the traceback of an error."),
]
LogLevelOption = Annotated[
    LogLevel | None,
    typer.Option(
        "--log-level",
        envvar="HOOKLEDGER_LOG_LEVEL",
        metavar="LEVEL",
        callback=_choose_log_level,
        help="How much to log on standard error: debug, info, warning or error.",
    ),
]
LogFormatOption = Annotated[
    LogFormat,
    typer.Option("--log-format", envvar="HOOKLEDGER_LOG_FORMAT", help="Log plain lines, or one JSON object a line."),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        envvar="DATABASE_URL",
        metavar="URL",
        help="The ledger's database: postgresql://user:password@host/name.",
    ),
]
Schema = Annotated[
    str,
    typer.Option(
        "--schema",
        envvar="HOOKLEDGER_SCHEMA",
        metavar="NAME",
        help="The PostgreSQL schema that holds the ledger's tables.",
    ),
]
InboxArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:INBOX",
        help="Where your inbox is: hooks:inbox is the variable `inbox` of hooks.py in this folder.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
