"""Receive webhooks without losing, duplicating or misordering them. PostgreSQL is the only moving part."""

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
