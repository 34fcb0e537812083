"""The real `hookledger` command in a project folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.processes import Child

COMMAND = Path(sys.executable).with_name("hookledger")
SECRET = "whsec_c3RyaXBlLXRlc3Qtc2VjcmV0"
BODY = b'{"id":"evt_1","type":"charge.succeeded","created":1700000000,"data":{"object":{"id":"ch_1"}}}'

HOOKS = f"""
from sqlalchemy import Connection, text

from hookledger import Delivery, Inbox, github, standard_webhooks, stripe

inbox = Inbox(
    stripe(secrets="{SECRET}"),
    github("acme-github", secrets="github-test-secret"),
    standard_webhooks("billing", secrets="whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"),
)
"""

HANDLER = """
@inbox.accumulate("stripe", "charge.*")
def add_revenue(delivery: Delivery, tx: Connection) -> None:
    tx.execute(text("SELECT 1"))
"""


def clean_environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without what would change the command, and with what is given."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HOOKLEDGER_") and name not in ("DATABASE_URL", "PYTHONPATH", "COLUMNS", "FORCE_COLOR")
    }
    return {**inherited, **(given or {})}


class Project:
    """A user's project: a folder with modules, in which commands are run.

    Args:
        folder: an empty one.
        database_url: what DATABASE_URL is set to; None leaves it unset.
    """

    def __init__(self, folder: Path, database_url: str | None = None) -> None:
        self.folder = folder
        self.database_url = database_url

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file into the folder."""
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def environment(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a command."""
        database = {} if self.database_url is None else {"DATABASE_URL": self.database_url}
        return clean_environment({**database, **(given or {})})

    def run(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None, stdin: bytes | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        done = subprocess.run(
            [str(COMMAND), *[str(argument) for argument in arguments]],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            cwd=self.folder,
            env=self.environment(env),
            timeout=120,
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Child:
        """Start a command that goes on until it is stopped."""
        # Child adds to the environment of the test, so what is not to be seen is blanked.
        hidden = {name: "" for name in os.environ if name.startswith("HOOKLEDGER_") or name == "DATABASE_URL"}
        return Child(COMMAND, *arguments, env={**hidden, **self.environment(env)}, cwd=self.folder)


def assert_told_in_one_sentence(
    done: subprocess.CompletedProcess[str], status: int, *words: str, nothing_on_stdout: bool = True
) -> None:
    """The command failed as it should: the exit status, and one line that holds the words and no traceback."""
    told = done.stderr
    assert done.returncode == status, told
    assert told.startswith("error: "), told
    assert told.count("\n") == 1, told
    assert "Traceback" not in told
    for word in words:
        assert word in told, told
    if nothing_on_stdout:
        assert done.stdout == ""
