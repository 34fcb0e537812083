"""One line for every delivery that goes through `hookledger dev`."""

from __future__ import annotations

import sys
import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hookledger.cli.errors import one_line
from hookledger.cli.output import print_json
from hookledger.receive.accept import Accepted
from hookledger.receive.waiter import Outcome

if TYPE_CHECKING:
    from hookledger.worker import Settled

COLOURS = {
    "received": "cyan",
    "repeated": "cyan",
    "applied": "green",
    "stale": "yellow",
    "superseded": "yellow",
    "ignored": "bright_black",
}
COLOUR_OF_FAILURES = "red"
LONGEST_ERROR = 300
TOLD_HERE = ("hookledger.receive.intake", "hookledger.receive.flush", "hookledger.worker.cycle")
"""Loggers whose warnings say what is printed here."""


class Passing:
    """Prints what happens, from whichever thread it is told."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._lock = threading.Lock()
        self._console: Any = None
        if not as_json and sys.stdout.isatty():
            from rich.console import Console

            self._console = Console(highlight=False, soft_wrap=True)

    def received(self, accepted: Accepted, outcome: Outcome) -> None:
        """A request is committed: its events are new, or had been sent before."""
        for event in accepted.events:
            facts = {
                "source": event.source,
                "event_id": event.event_id,
                "event_type": event.event_type,
                "resource": event.resource,
                "error": event.unreadable,
            }
            self._print("repeated" if outcome == "repeated" else "received", facts)

    def refused(self, source: str, status: int, reason: str) -> None:
        """A request did not get in."""
        self._print("refused", {"source": source, "status": status, "error": reason})

    def settled(self, settled: Settled) -> None:
        """A worker is done with a delivery and a handler, for now or for good."""
        facts = {
            "source": settled.source,
            "event_id": settled.event_id,
            "event_type": settled.event_type,
            "resource": settled.resource,
            "delivery_id": settled.delivery_id,
            "handler": settled.handler,
            "attempt": settled.attempt,
            "error": settled.error,
            "place": settled.place,
        }
        self._print(str(settled.outcome), facts)

    def _print(self, what: str, facts: dict[str, Any]) -> None:
        with self._lock:
            if self._as_json:
                print_json({"at": time.time(), "what": what, **facts})
                return
            text = f"{datetime.now():%H:%M:%S}  {what:<10}  {_in_words(facts)}"
            if self._console is None:
                print(text, flush=True)
                return
            from rich.text import Text

            line = Text(text)
            line.stylize(COLOURS.get(what, COLOUR_OF_FAILURES), 10, 10 + len(what))
            self._console.print(line)


def _in_words(facts: dict[str, Any]) -> str:
    words = [facts["source"]]
    if "status" in facts:
        words.append(str(facts["status"]))
    else:
        words += [facts[name] or "-" for name in ("event_id", "event_type", "resource")]
    if facts.get("handler"):
        words.append(f"by {facts['handler']}")
    if facts.get("attempt", 1) > 1:
        words.append(f"attempt {facts['attempt']}")
    if facts.get("error"):
        words.append(facts["error"][:LONGEST_ERROR])
    return "  ".join(one_line(word) for word in words)
