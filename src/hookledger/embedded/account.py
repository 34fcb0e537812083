"""The account that the embedded server runs as: ourselves, or `nobody` when we are root."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookledger.errors import SetupError


@dataclass(frozen=True)
class Account:
    """Who owns the server's files and runs its processes.

    PostgreSQL refuses to run as root: https://www.postgresql.org/docs/current/app-postgres.html
    """

    uid: int
    gid: int
    differs: bool
    """True if it is not the account of this process, that is, if this process is root."""

    @property
    def popen_arguments(self) -> dict[str, Any]:
        """What subprocess needs to run a command as this account. The working directory is one that every
        account can reach; the user's own may not be."""
        if not self.differs:
            return {"cwd": "/"}
        return {"cwd": "/", "user": self.uid, "group": self.gid, "extra_groups": []}

    def can_enter(self, folder: Path) -> bool:
        """Whether this account can reach the folder."""
        if not self.differs:
            return os.access(folder, os.X_OK)
        command = ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)]
        return self.can_run(command)

    def can_run(self, command: Sequence[str | Path]) -> bool:
        """Whether the command, run as this account, succeeds."""
        try:
            done = subprocess.run(command, capture_output=True, check=False, **self.popen_arguments)  # noqa: S603
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0

    def take(self, folder: Path) -> None:
        """Make the folder one that only this account may enter."""
        if self.differs:
            os.chown(folder, self.uid, self.gid, follow_symlinks=False)
        folder.chmod(0o700)


def server_account() -> Account:
    """The account to run the server as.

    Raises:
        SetupError: this process is root and the machine has no user `nobody`.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), differs=False)
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise SetupError(
            "PostgreSQL does not run as root and this machine has no user `nobody`; run hookledger as an ordinary user."
        ) from None
    return Account(nobody.pw_uid, nobody.pw_gid, differs=True)
