"""Runs the soak and balances the books: `python -m tests.soak --minutes N [--seed S]`."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter

from sqlalchemy.exc import DBAPIError

from tests.faults.books import Books, read_books
from tests.soak.inject import Injector, wake_all
from tests.soak.plan import DOOMED, Plan, make_plan
from tests.soak.sender import Senders
from tests.soak.stage import Stage

SETTLED_WITHIN = 180.0
"""Seconds that everything has after the last fault to be acknowledged, and then to be settled."""
LOOK_EVERY = 0.25
MOST_TOLD = 30


def main() -> int:
    """Run it; 0 if the books balance."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="All faults at random, then the books.")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long there are faults")
    parser.add_argument("--seed", type=int, default=1, help="another one gives other traffic and other faults")
    parser.add_argument("--verbose", action="store_true", help="tell each fault as it comes")
    options = parser.parse_args()
    plan = make_plan(options.seed, options.minutes * 60)
    tell = (lambda words: print(words, flush=True)) if options.verbose else (lambda _: None)
    with Stage() as stage:
        senders = Senders(plan, stage.receivers)
        injector = Injector(plan, stage, tell)
        began = time.monotonic()
        sending = threading.Thread(target=senders.run, args=(began,), daemon=True)
        sending.start()
        injector.run(began)
        wake_all(stage)
        time.sleep(max(0.0, began + plan.seconds - time.monotonic()))
        sending.join(SETTLED_WITHIN)
        senders.give_up()
        sending.join()
        wait_until_settled(stage)
        books = read_books(stage.url, senders.journal)
        charged = doomed(books, senders)
        ends = Counter(status for process in stage.processes for status, _ in process.ended)
    wrong = [*charged, *senders.wrong, *stage.complaints()]
    wrong += [f"{name} is still pending" for name in books.pending]
    wrong += [f"{name} was not taken within {SETTLED_WITHIN:g} s of the last fault" for name in senders.given_up]
    return report(plan, senders, injector, books, wrong, ends)


def wait_until_settled(stage: Stage) -> None:
    """Return when nothing is pending, or the time for it is over."""
    deadline = time.monotonic() + SETTLED_WITHIN
    while time.monotonic() < deadline:
        try:
            with stage.connection() as connection:
                if not connection.exec_driver_sql("SELECT count(*) FROM hookledger.pending").scalar_one():
                    return
        except DBAPIError as error:
            print(f"the server cannot be asked: {error}", file=sys.stderr)
        time.sleep(LOOK_EVERY)


def doomed(books: Books, senders: Senders) -> list[str]:
    """Dead letters that no handler has wanted."""
    types = {event.event_id: event.type for event in senders.journal.sent}
    return [
        f"{name} is a dead letter ({reason}), and nothing was wrong with it"
        for name, reason in books.dead.items()
        if types.get(name) not in DOOMED
    ]


def report(
    plan: Plan,
    senders: Senders,
    injector: Injector,
    books: Books,
    wrong: list[str],
    ends: Counter[int],
) -> int:
    """Print the books; the exit status."""
    outcomes: Counter[str] = Counter()
    for (_, outcome), count in books.outcomes.items():
        outcomes[outcome] += count
    by_outcome = ", ".join(f"{outcome} {count}" for outcome, count in sorted(outcomes.items()))
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(senders.statuses.items()))
    print(f"seed          {plan.seed}, {plan.seconds:g} s")
    print(f"sent          {books.sent} requests ({statuses}, no answer: {senders.unanswered})")
    print(f"              {', '.join(f'{manner}: {count}' for manner, count in sorted(senders.manners.items()))}")
    print(f"acknowledged  {books.acknowledged}")
    print(f"unique        {books.unique}, recorded {books.recorded}, dead letters {len(books.dead)}")
    print(f"effects       {outcomes.total()}: {by_outcome}")
    print(f"lost          {len(books.lost)}")
    print(f"doubled       {len(books.doubled)}")
    print(f"moved back    {len(books.moved_back)}")
    print(f"faults        {injector.counts.total()} of {len(plan.faults)} that were planned")
    for fault, count in sorted(injector.counts.items()):
        print(f"  {count:4}  {fault}")
    by_status = ", ".join(f"{status}: {count}" for status, count in sorted(ends.items()))
    print(f"ended         {ends.total()} processes, each started again (by exit status {by_status})")
    wrong = [*books.lost, *books.doubled, *books.moved_back, *wrong]
    if not wrong:
        print("the books balance")
        return 0
    print(f"\nFAIL with the seed {plan.seed}:")
    for words in wrong[:MOST_TOLD]:
        print(f"  {words}")
    if len(wrong) > MOST_TOLD:
        print(f"  and {len(wrong) - MOST_TOLD} more")
    return 1


if __name__ == "__main__":
    sys.exit(main())
