"""For your tests: a database, a sender, a worker, and a search for sequences in which your handlers do not converge.

The fixtures are in `hookledger.testing.plugin`, which pytest loads by itself; docs/testing.md shows how they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookledger.testing.client import InboxClient
    from hookledger.testing.converge import assert_converges
    from hookledger.testing.databases import LedgerDatabase
    from hookledger.testing.idle import WorkReport, run_worker_until_idle
    from hookledger.testing.signing import signed

__all__ = ["InboxClient", "LedgerDatabase", "WorkReport", "assert_converges", "run_worker_until_idle", "signed"]

_MODULES = {
    "InboxClient": "hookledger.testing.client",
    "LedgerDatabase": "hookledger.testing.databases",
    "WorkReport": "hookledger.testing.idle",
    "assert_converges": "hookledger.testing.converge",
    "run_worker_until_idle": "hookledger.testing.idle",
    "signed": "hookledger.testing.signing",
}


def __getattr__(name: str) -> object:
    # Imported when first used: pytest loads this package in each run of everybody who has hookledger installed.
    if name in _MODULES:
        found: object = getattr(import_module(_MODULES[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
