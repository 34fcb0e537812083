"""The cases: what went wrong elsewhere, where that can be read, and what happens here.

A test names its cases: `test_b001_...`, or `test_b002_b003_...` for several.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

COMING = frozenset({"B041"})
"""Those that have no test yet."""


@dataclass(frozen=True)
class Case:
    """One fault.

    Args:
        id: B and three digits.
        kind: what it is about.
        sources: where it was reported, each `owner/repository#number` on GitHub.
        fault: what went wrong there.
        here: what happens here.
    """

    id: str
    kind: str
    sources: list[str]
    fault: str
    here: str


CASES = [Case(**each) for each in json.loads(Path(__file__).with_name("cases.json").read_text())]
