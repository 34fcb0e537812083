"""The way through: claim deliveries, hold them, run handlers, and commit everything together."""

from hookledger.worker.outcome import Outcome, Settled
from hookledger.worker.runner import Worker
from hookledger.worker.settings import WorkerSettings

__all__ = ["Outcome", "Settled", "Worker", "WorkerSettings"]
