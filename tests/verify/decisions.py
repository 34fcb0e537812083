"""Which decision of ARCHITECTURE.md a test holds, by the file it is in."""

from __future__ import annotations

from fnmatch import fnmatch

TITLES = {
    "D1": "Acknowledge only what is committed",
    "D2": "Keep the exact bytes",
    "D3": "Verify first, fail closed",
    "D4": "One event, one row",
    "D5": "Batches",
    "D6": "Exactly once where it can be promised",
    "D7": "Order is guarded by the watermark",
    "D8": "Fixed lock order",
    "D9": "SKIP LOCKED is the entire scheduler",
    "D10": "Crashes count, poison is isolated",
    "D11": "One way in",
    "D12": "Sync and async are one code path",
    "D13": "Live beside the user's schema",
    "D14": "Frameworks at the edge",
    "code": "Style, types, imports",
    "package": "Wheel and sdist",
    "tools": "Command line, demo, embedded server, examples",
    "model": "Values and settings",
}

BY_FILE: tuple[tuple[str, str], ...] = ()
"""(pattern of the test's file, decision); the first that fits holds."""


def decision_of(path: str) -> str:
    """The decision that the tests of a file hold."""
    for pattern, decision in BY_FILE:
        if fnmatch(path, pattern):
            return decision
    return "model"
