"""Receive webhooks in Flask."""

from hookledger_flask.receiver import receiver
from hookledger_flask.worker import RunningWorker, run_worker

__all__ = ["RunningWorker", "receiver", "run_worker"]
