"""What ends a demo before it can be judged."""

from __future__ import annotations

from hookledger.errors import HookledgerError


class DemoFailed(HookledgerError):
    """The demo could not be run to its end. The message says which part of it gave up, and what it said last."""
