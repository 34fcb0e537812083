"""The inbox of a worker process that is stopped, as by Ctrl-Z, when it parks something for the first time."""

from __future__ import annotations

import signal
import threading
from typing import Any

from sqlalchemy import Engine, event

from tests.concurrency.older_hooks import sync as sync

_seen: list[str] = []


def stop(_: Any, __: Any, statement: str, *___: Any) -> None:
    """Stop the process once it has locked what is paused."""
    if "FOR SHARE" in statement and not _seen:
        _seen.append(statement)
        # Not os.kill: another thread might take the signal, and this one go on for a moment.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


event.listen(Engine, "after_cursor_execute", stop)
