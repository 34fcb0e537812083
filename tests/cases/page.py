"""Writes docs/cases.md from the table of cases and the names of the tests."""

from __future__ import annotations

from itertools import groupby

from tests.cases.holding import holding
from tests.cases.table import CASES

HEAD = """<!-- Written by `python -m tests.docs` from tests/cases/cases.json and the names of the tests. -->

# Cases

Faults that people really had with receivers of webhooks and with queues of jobs, each with where it was reported, what
happens here, and the tests that show it. A test has the id of its case in its name: `pytest tests -k b045`.

Beyond the list there is fuzzing: requests near to what each provider sends and far from it, rightly and wrongly signed,
framed and cut into pieces, sent to uvicorn, to gunicorn and to the intake alone. No answer may be a 500, no request may
hang, memory stays flat, and what was acknowledged is committed with its bytes. A few seconds of it are in the tests.
For more:

```sh
python -m tests.fuzz --minutes 10             # --seed N repeats a run
```
"""


def page() -> str:
    """The whole page."""
    tests = holding()
    parts = [HEAD]
    for kind, cases in groupby(CASES, lambda case: case.kind):
        parts.append(f"\n## {kind}\n")
        for case in cases:
            held = [f"[`{test.name}`](../{test.path})" for test in tests[case.id]]
            reported = ", ".join(_link(source) for source in case.sources)
            parts.append(
                f"\n### {case.id}\n\n{case.fault} ({reported})\n\n- Here: {case.here}\n- Tests: {', '.join(held)}.\n"
            )
    return "".join(parts)


def _link(source: str) -> str:
    repository, _, number = source.partition("#")
    return f"[{source}](https://github.com/{repository}/issues/{number})"
