"""A PostgreSQL server of one's own: no installation, no docker, nothing left behind."""

from __future__ import annotations

from hookledger.embedded.server import EmbeddedPostgres, StopMode

__all__ = ["EmbeddedPostgres", "StopMode"]
