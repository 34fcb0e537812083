"""Explores all settings, and every mutation: `python -m tests.model`."""

from __future__ import annotations

import sys

from tests.model.explorer import Explored, explore
from tests.model.settings import MUTATIONS, SETTINGS

PROPERTIES = (
    "a handler's effect is committed at most once, and is in the ledger",
    "no two workers run a delivery at a time",
    "from every state all deliveries can come to their end without a further fault",
    "the watermark never moves back, and ends at the newest that was settled",
    "whoever runs a delivery has charged it, and never more often than there may be attempts",
    "a harmless delivery is no dead letter, unless as many workers as it has attempts died or stalled with it",
    "what ends the process is never settled",
    "a settled delivery has all of its outcomes, and nothing is lost",
    "a claim takes no more than its batch",
)


def main() -> int:
    """Print what was found; 1 if a property does not hold or a mutation is not caught."""
    failed = False
    print("Properties, looked at in every state:")
    for told in PROPERTIES:
        print(f"  {told}")
    print("\n  states    steps  depth  seconds  setting")
    total = [0, 0]
    seconds = 0.0
    for setting in SETTINGS:
        found = explore(setting)
        total = [total[0] + found.states, total[1] + found.steps]
        seconds += found.seconds
        print(f"{_numbers(found)}  {setting.name}")
        if found.flaw:
            failed = True
            print(f"FAIL: {found.flaw}: {'; '.join(found.trace)}")
    print(f"{total[0]:8} {total[1]:8} {seconds:15.1f}  in all: every property holds" if not failed else "FAIL")
    print("\nMutations, each of which must be caught:")
    for setting in MUTATIONS:
        found = explore(setting)
        print(f"{_numbers(found)}  {setting.name}: {found.flaw or 'NOT CAUGHT'}")
        failed = failed or not found.flaw
    return 1 if failed else 0


def _numbers(found: Explored) -> str:
    return f"{found.states:8} {found.steps:8} {found.depth:6} {found.seconds:8.1f}"


if __name__ == "__main__":
    sys.exit(main())
