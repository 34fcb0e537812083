"""The senders that hookledger knows, and the generic one."""

from __future__ import annotations

from hookledger.delivery import Event
from hookledger.sources.github import github
from hookledger.sources.hmac_source import hmac_source
from hookledger.sources.source import Source, Verifier
from hookledger.sources.standard_webhooks import standard_webhooks
from hookledger.sources.stripe import stripe

__all__ = ["Event", "Source", "Verifier", "github", "hmac_source", "standard_webhooks", "stripe"]
