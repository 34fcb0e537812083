"""Logging of the long-running commands: records of hookledger and of the user's code on standard error."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from hookledger.cli.errors import one_line, printable, without_password
from hookledger.cli.options import LogFormat, LogLevel

_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _USUAL}


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class PlainLines(logging.Formatter):
    """Time in UTC, level, logger, message, and the extra fields as name=value; a traceback follows below."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        fields = "".join(f" {name}={one_line(str(value))}" for name, value in _extra(record).items())
        line = f"{_time(record)} {record.levelname:<7} {record.name}: {one_line(record.getMessage())}{fields}"
        if record.exc_info and record.exc_info[1] is not None:
            told = "".join(traceback.format_exception(record.exc_info[1])).rstrip()
            # An error may repeat what a sender wrote.
            line = "\n".join([line, *[printable(each) for each in told.split("\n")]])
        return without_password(line)


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the extra fields, and error with a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        document = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info and record.exc_info[1] is not None:
            document["error"] = "".join(traceback.format_exception(record.exc_info[1]))
        safe = {name: without_password(value) if isinstance(value, str) else value for name, value in document.items()}
        return json.dumps(safe, default=str)


def set_up_logging(level: LogLevel, form: LogFormat = LogFormat.PLAIN) -> None:
    """Send the records of every logger to standard error; a set-up of the user's module may still change it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form is LogFormat.JSON else PlainLines())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.value.upper())
    if level is not LogLevel.DEBUG:
        # At INFO it tells of its own plugins at every start.
        logging.getLogger("alembic").setLevel(logging.WARNING)
