"""The folders of an embedded server, which both we and the account it runs as can reach."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hookledger.embedded.account import Account
from hookledger.errors import SetupError

LONGEST = 90
"""Bytes. The path of a Unix socket has at most 107, and PostgreSQL appends `/.s.PGSQL.5432`."""


def temporary_folder(prefix: str, account: Account) -> Path:
    """Make a folder below the temporary folder, or below /tmp if that can't serve, that is fit for a socket.

    Raises:
        SetupError: neither can serve.
    """
    for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 - mkdtemp makes a private folder there
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        folder.chmod(_mode(account))
        # A comma separates hosts in a connection string.
        if len(os.fsencode(folder)) <= LONGEST and "," not in str(folder) and account.can_enter(folder):
            return folder
        folder.rmdir()
    raise SetupError("Neither the temporary folder nor /tmp can be used for a server; set TMPDIR to another one.")


def lasting_folder(folder: Path, account: Account) -> Path:
    """Make the folder if it is missing, and return its absolute path.

    Raises:
        SetupError: it can't be made.
    """
    folder = folder.absolute()
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True)
            folder.chmod(_mode(account))
    except OSError as error:
        raise SetupError(f"The data folder {folder} can't be made ({error.strerror}); give another one.") from error
    return folder


def _mode(account: Account) -> int:
    """`nobody` must be able to pass through a folder of root's to what is its own in there."""
    return 0o711 if account.differs else 0o700
