"""Fuzzing for as long as is asked for: `python -m tests.fuzz --minutes 10 [--seed 7] [--json]`.

Attempts of all providers go to the intake in this process, over threads and over an event loop, and over sockets to
uvicorn (with httptools and with h11) and gunicorn, in turn. What is found is made as small as it gets and printed. The
memory of the servers is measured after the first turn and at the end.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from hookledger.embedded import EmbeddedPostgres
from tests.databases import Databases
from tests.fuzz.attempts import attempts
from tests.fuzz.in_process import InProcess
from tests.fuzz.over_sockets import KINDS, OverSockets, sent, served_for_fuzzing
from tests.fuzz.senders import every

EXAMPLES = 150
"""Requests to one target before it is the next one's turn."""
MEGABYTE = 10**6
MOST_GROWTH = 50
"""Megabytes by which the memory of a server may differ from that after its first turn."""

Target = InProcess | OverSockets


def fuzz(targets: list[Target], minutes: float, seed: int) -> dict[str, Any]:
    """Send to the targets in turn until the time is over; the report."""
    end = time.monotonic() + 60 * minutes
    chance = random.Random(seed)
    found: list[dict[str, str]] = []
    memory: dict[str, list[int]] = {target.name: [] for target in targets}
    turns = 0
    while time.monotonic() < end:
        for target in targets:
            if problem := _turn(target, chance.randrange(2**32), end):
                found.append({"target": target.name, "problem": problem})
            memory[target.name].append(target.memory() // MEGABYTE)
        turns += 1
    servers = {
        name: {"first": used[0], "last": used[-1], "most": max(used)} for name, used in memory.items() if any(used)
    }
    found += [
        {"target": name, "problem": f"its memory went from {used['first']} to {used['last']} MB"}
        for name, used in servers.items()
        if used["last"] - used["first"] > MOST_GROWTH
    ]
    return {
        "seed": seed,
        "turns": turns,
        "requests": sum(target.answers.total() for target in targets),
        "answers": {target.name: dict(sorted(target.answers.items())) for target in targets},
        "memory_mb": servers,
        "found": found,
    }


def _turn(target: Target, seed: int, end: float) -> str:
    """Send a number of attempts; what went wrong, as small as it gets."""
    strategy = sent() if isinstance(target, OverSockets) else st.lists(attempts(every()), min_size=1, max_size=6)
    send: Callable[[Any], None] = target.send

    def attempt(given_attempt: Any) -> None:
        if time.monotonic() < end:
            send(given_attempt)

    chosen = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    try:
        with_seed(seed)(chosen(given(strategy)(attempt)))()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> int:
    """Run what was asked for; 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Send the receiver whatever there is.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="what is drawn depends on it alone")
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    with ExitStack() as stack:
        server = stack.enter_context(EmbeddedPostgres(settings={"max_connections": "200"}))
        databases = stack.enter_context(Databases(server.url))
        targets: list[Target] = [
            stack.enter_context(served_for_fuzzing(kind, databases.create(databases.template))) for kind in KINDS
        ]
        for way in ("threads", "loop-async"):
            target = InProcess(way, databases.create(databases.template))
            stack.callback(target.close)
            targets.append(target)
        report = fuzz(targets, options.minutes, seed)
    print(json.dumps(report, indent=None if options.json else 1))
    if report["found"]:
        print(f"found {len(report['found'])}; again with --seed {seed}", file=sys.stderr)
    return 1 if report["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
