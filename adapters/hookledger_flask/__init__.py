"""Receive webhooks in Flask."""

from hookledger_flask.receiver import receiver


__all__ = ["receiver"]
