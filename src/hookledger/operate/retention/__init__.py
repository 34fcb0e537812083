"""How long what is stored: partitions of the payloads, pruning, erasing."""

from hookledger.operate.retention.horizons import Retention

__all__ = ["Retention"]
