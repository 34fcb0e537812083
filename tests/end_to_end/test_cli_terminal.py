"""What is shown on a terminal, as against in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.end_to_end.command import COMMAND, Project

STYLE = re.compile(r"\x1b\[[0-9;]*m")
COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-7]|9[0-7])(?:;[0-9]+)*m")


def on_a_terminal(project: Project, arguments: Sequence[str], **env: str) -> str:
    """What a command writes to its terminal."""
    outer, inner = pty.openpty()
    try:
        process = subprocess.Popen(
            [str(COMMAND), *arguments],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=project.folder,
            env=project.environment({"TERM": "xterm-256color", "COLUMNS": "100", **env}),
        )
        os.close(inner)
        written = b""
        # Linux says EIO, and not the end of the file, when the last writer has closed a terminal.
        try:
            while more := os.read(outer, 65536):
                written += more
        except OSError:
            pass
        process.wait()
    finally:
        os.close(outer)
    return written.decode()


@pytest.fixture
def project(tmp_path: Path, database_url: str, engine: Engine) -> Project:
    """A ledger with one effect of a source whose name would be markup to Rich."""
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO hookledger.deliveries "
                "(source, event_id, event_type, payload_id, received_at, body_digest) "
                "VALUES ('[red]x', 'e', 't', 1, now(), '')"
            )
        )
        connection.execute(
            text(
                "INSERT INTO hookledger.effects (source, event_id, handler, delivery_id, outcome) "
                "VALUES ('[red]x', 'e', 'h', 1, 'applied')"
            )
        )
    return Project(tmp_path, database_url)


def test_help_is_coloured_on_a_terminal_only(project: Project) -> None:
    assert COLOUR.search(on_a_terminal(project, ["--help"]))
    assert not COLOUR.search(on_a_terminal(project, ["--help"], NO_COLOR="1"))
    assert "\x1b" not in project.run("--help").stdout


def test_a_table_on_a_terminal_has_the_numbers_of_the_plain_one(project: Project) -> None:
    shown = STYLE.sub("", on_a_terminal(project, ["status"]))
    assert "\x1b" not in shown
    plain = project.run("status").stdout
    assert "\x1b" not in plain
    assert "[red]x" in plain

    def numbers(output: str) -> list[list[str]]:
        return [line.split() for line in output.splitlines() if line.strip()][2:]

    assert numbers(shown) == numbers(plain)
    assert ["applied", "1", "1"] in numbers(plain)


def test_no_colour_in_a_table_that_does_not_want_it(project: Project) -> None:
    assert not COLOUR.search(on_a_terminal(project, ["status"], NO_COLOR="1"))


def test_the_bytes_of_a_sender_do_not_drive_the_terminal(project: Project, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            text(
                "WITH payload AS (INSERT INTO hookledger.payloads (headers, body)"
                ' VALUES (\'[["X-Note", "\\u001b[2J"]]\', :body) RETURNING id, received_at)'
                " INSERT INTO hookledger.deliveries"
                " (id, source, event_id, event_type, payload_id, received_at, body_digest)"
                " OVERRIDING SYSTEM VALUE SELECT 77, 'shop', 'e', :type, id, received_at, '' FROM payload"
            ),
            {"body": b"one\x1b]0;title\x07\ntwo", "type": "\x1b[5mblink"},
        )
    for arguments in (["show", "77", "--raw"], ["show", "77"], ["deliveries", "77"]):
        written = STYLE.sub("", on_a_terminal(project, arguments))
        assert not {"\x1b", "\x07"} & set(written), arguments
    assert "one\ufffd]0;title\ufffd\r\ntwo" in on_a_terminal(project, ["show", "77", "--raw"])


def test_status_is_watched_on_a_screen_of_its_own(project: Project) -> None:
    outer, inner = pty.openpty()
    written = b""
    try:
        process = subprocess.Popen(
            [str(COMMAND), "status", "--watch", "--every", "0.1"],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=project.environment({"TERM": "xterm-256color"}),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(inner)
        while written.count(b"Ctrl-C ends it") < 2:
            written += os.read(outer, 65536)
        os.write(outer, b"\x03")
        try:
            while more := os.read(outer, 65536):
                written += more
        except OSError:
            pass
        assert process.wait() == 130
    finally:
        os.close(outer)
    text_written = written.decode()
    assert text_written.startswith("\x1b[?1049h")
    assert text_written.count("\x1b[H\x1b[2J") >= 2
    assert "\x1b[?1049l" in text_written
    assert "Traceback" not in text_written


def test_a_fingerprint_is_never_broken_over_lines(project: Project, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO hookledger.dead_letters (delivery_id, attempts, reason, error, fingerprint)"
                " SELECT id, 3, 'failed', repeat('LookupError ', 20), '3f2a9c01d4e5b678' FROM hookledger.deliveries"
            )
        )
    for columns in ("80", "60"):
        assert "3f2a9c01d4e5b678" in on_a_terminal(project, ["dead"], COLUMNS=columns)
