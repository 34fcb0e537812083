"""The web frameworks that the demo can receive with, and what they need."""

from __future__ import annotations

import enum
import importlib.util

from hookledger.errors import SetupError

HOST = "127.0.0.1"
PREFIX = "/webhooks"


class Framework(enum.StrEnum):
    """Which adapter the demo receives with."""

    STARLETTE = "starlette"
    FLASK = "flask"


NEEDED = {Framework.STARLETTE: ("starlette", "uvicorn"), Framework.FLASK: ("flask", "gunicorn")}
INSTALL = 'run pip install "hookledger[demo]"'


def require_installed(framework: Framework) -> None:
    """See that the framework, its server and PostgreSQL are there.

    Raises:
        SetupError: if not, with the command that installs them.
    """
    missing = [package for package in NEEDED[framework] if importlib.util.find_spec(package) is None]
    if missing:
        raise SetupError(f"the demo needs {' and '.join(missing)}: {INSTALL}")

    from hookledger.embedded.binaries import find_bindir, usual_bindirs

    if next(usual_bindirs(), None) is None:
        try:
            find_bindir()  # PG_BINDIR may still name them
        except SetupError as error:
            raise SetupError(f"the demo needs PostgreSQL's binaries: {INSTALL}") from error
