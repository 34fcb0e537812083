"""What a log line looks like, plain and as JSON."""

from __future__ import annotations

import json
import logging

from hookledger.cli.logs import JsonLines, PlainLines


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("hookledger.x", logging.WARNING, "x.py", 1, message, arguments, None)
    made.created = 1767225600.25
    vars(made).update(extra)
    return made


def test_a_plain_line_has_the_extra_fields_and_stays_one_line() -> None:
    line = PlainLines().format(record("failed in %s", "a\nb\x1b[2J", delivery_id=7, source="stripe"))
    assert line == "2026-01-01T00:00:00.250Z WARNING hookledger.x: failed in a b\ufffd[2J delivery_id=7 source=stripe"


def test_a_traceback_follows_the_line() -> None:
    try:
        raise ValueError("here")
    except ValueError as error:
        made = record("failed")
        made.exc_info = (ValueError, error, error.__traceback__)
    first, *rest = PlainLines().format(made).splitlines()
    assert first.endswith("failed")
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1] == "ValueError: here"
    assert json.loads(JsonLines().format(made))["error"].splitlines()[-1] == "ValueError: here"


def test_a_json_line() -> None:
    line = JsonLines().format(record("failed in %s", "a\nb", delivery_id=7, odd={1}))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2026-01-01T00:00:00.250Z",
        "level": "warning",
        "logger": "hookledger.x",
        "message": "failed in a\nb",
        "delivery_id": 7,
        "odd": "{1}",
    }


def test_no_password_is_logged() -> None:
    url = "postgresql://app:pa55@host/db"
    made = record("cannot connect to %s", url, url=url)
    made.exc_info = (ValueError, ValueError(url), None)
    assert "pa55" not in PlainLines().format(made)
    assert "pa55" not in JsonLines().format(made)
