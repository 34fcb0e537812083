"""Who runs a command, for the records of what was done."""

from __future__ import annotations

import getpass
import os
import socket
from typing import Annotated

import typer

WhoOption = Annotated[
    str | None,
    typer.Option(
        "--who", envvar="HOOKLEDGER_WHO", metavar="NAME", help="Who does this, for the record; else user@host."
    ),
]


def who(given: str | None) -> str:
    """The name for the record: as given, else the user and the machine."""
    if given is not None and given.strip():
        return given.strip()
    try:
        user = os.environ.get("SUDO_USER") or getpass.getuser()
    except (OSError, KeyError):
        # An account without a name, as in containers.
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "somebody"
    return f"{user}@{socket.gethostname()}"
