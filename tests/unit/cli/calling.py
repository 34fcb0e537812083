"""A command called in this process, for the many ways in which it can be called."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hookledger.cli.app import run


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> Ended:
    """Run a command of `hookledger` to its end."""
    capsys.readouterr()
    status = run([str(each) for each in arguments])
    told = capsys.readouterr()
    return Ended(status, told.out, told.err)
