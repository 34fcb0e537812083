"""What a newcomer sees: help for everything, at once, and a sentence for what was mistyped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer

from hookledger.cli.app import build
from tests.end_to_end.command import Project, assert_told_in_one_sentence, clean_environment


def every_command(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command and group, with the words that call it."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from every_command(below, (*path, name))


COMMANDS = list(every_command(typer.main.get_command(build(rich=False))))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty folder."""
    return Project(tmp_path)


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) or "hookledger" for path, _ in COMMANDS])
def test_every_command_and_option_has_help(project: Project, path: tuple[str, ...], command: Any) -> None:
    assert command.help, path
    for parameter in command.params:
        assert parameter.help, f"{' '.join(path)} {parameter.name}"
        assert parameter.help.endswith("."), parameter.help
    done = project.run(*path, "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    for parameter in command.params:
        for spelling in parameter.opts:
            if spelling.startswith("-"):
                assert spelling in done.stdout


def test_no_summary_is_cut_off(project: Project) -> None:
    for group in [path for path, command in COMMANDS if getattr(command, "commands", None)]:
        _, _, commands = project.run(*group, "--help").stdout.partition("Commands:")
        assert commands
        assert "..." not in commands


def test_help_needs_nothing_heavy() -> None:
    """SQLAlchemy, Alembic and Rich take most of a second on a slow machine."""
    show = (
        "import sys\n"
        "from hookledger.cli.app import run\n"
        "run(['--help'])\n"
        "print({'sqlalchemy', 'alembic', 'psycopg', 'rich', 'asyncio'} & set(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", show], capture_output=True, text=True, env=clean_environment(), timeout=60
    )
    assert "Usage: hookledger" in done.stdout
    assert done.stderr == "set()\n"


@pytest.mark.parametrize("group", [(), ("db",)], ids=["hookledger", "db"])
def test_a_group_alone_shows_its_help(project: Project, group: tuple[str, ...]) -> None:
    done = project.run(*group)
    assert done.returncode == 2
    assert "Commands:" in done.stdout


def test_version(project: Project) -> None:
    done = project.run("--version")
    assert (done.returncode, done.stdout) == (0, f"hookledger {version('hookledger')}\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("upgrade",), ["no such command 'upgrade'", "hookledger --help"]),
        (("worker",), ["missing argument 'MODULE:INBOX'", "hookledger worker --help"]),
        (("worker", "hooks:inbox", "--slots", "0"), ["--slots"]),
        (("worker", "hooks:inbox", "--slots", "many"), ["--slots"]),
        (("worker", "hooks:inbox", "--slot", "4"), ["--slot"]),
        (("status", "--log-format", "xml"), ["--log-format"]),
        (("--log-level", "loud", "status"), ["--log-level"]),
        (("db", "grants"), ["missing argument 'ROLE'"]),
    ],
)
def test_wrong_use_is_told_in_one_sentence(project: Project, arguments: tuple[str, ...], words: list[str]) -> None:
    assert_told_in_one_sentence(project.run(*arguments), 2, *words)


def test_a_reader_that_goes_away_is_no_error(project: Project) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "from hookledger.cli import main; main()", "db", "sql"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=project.environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait()
