"""What is shown on a terminal, as against in a pipe."""

from __future__ import annotations

import os
import pty
import re
import subprocess
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
