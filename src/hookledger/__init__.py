"""Receive webhooks without losing, duplicating or misordering them. PostgreSQL is the only moving part."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookledger.delivery import Delivery, Event
    from hookledger.errors import HookledgerError, Reject, Retry, SetupError
    from hookledger.http import Headers, Request, Response
    from hookledger.inbox import Inbox
    from hookledger.retry import RetryPolicy
    from hookledger.sources import github, hmac_source, standard_webhooks, stripe
    from hookledger.sources.source import Source

__all__ = [
    "Delivery",
    "Event",
    "Headers",
    "HookledgerError",
    "Inbox",
    "Reject",
    "Request",
    "Response",
    "Retry",
    "RetryPolicy",
    "SetupError",
    "Source",
    "github",
    "hmac_source",
    "standard_webhooks",
    "stripe",
]

_MODULES = {
    "hookledger.delivery": ("Delivery", "Event"),
    "hookledger.errors": ("HookledgerError", "Reject", "Retry", "SetupError"),
    "hookledger.http": ("Headers", "Request", "Response"),
    "hookledger.inbox": ("Inbox",),
    "hookledger.retry": ("RetryPolicy",),
    "hookledger.sources": ("Source", "github", "hmac_source", "standard_webhooks", "stripe"),
}


def __getattr__(name: str) -> object:
    # Imported when first used: `hookledger --help` must not wait for SQLAlchemy.
    for module, names in _MODULES.items():
        if name in names:
            found: object = getattr(import_module(module), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
