"""What can become of a delivery, in the ledger's words. Apart from the worker, so that looking needs none of it."""

from __future__ import annotations

import enum


class Outcome(enum.StrEnum):
    """What a handler's row in the effects says."""

    APPLIED = "applied"
    STALE = "stale"
    SUPERSEDED = "superseded"
    IGNORED = "ignored"


class DeathReason(enum.StrEnum):
    """Why a delivery became a dead letter."""

    CRASHED = "crashed"
    FAILED = "failed"
    REJECTED = "rejected"
    UNREADABLE = "unreadable"
