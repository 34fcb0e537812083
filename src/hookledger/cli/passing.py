"""One line for every delivery that goes through `hookledger dev`."""

from __future__ import annotations

import sys
import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hookledger.cli.errors import one_line
from hookledger.cli.output import print_json
from hookledger.errors import HookledgerError
from hookledger.http import Request, Response
from hookledger.receive import Intake

if TYPE_CHECKING:
    from hookledger.worker import Settled

COLOURS = {
    "received": "cyan",
    "applied": "green",
    "stale": "yellow",
    "superseded": "yellow",
    "ignored": "bright_black",
    "failed": "red",
    "refused": "red",
}
OTHER_COLOUR = "red"
LONGEST_ERROR = 200


class Passing:
    """Prints what happens, from whichever thread it is told."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._lock = threading.Lock()
        self._console: Any = None
        if not as_json and sys.stdout.isatty():
            from rich.console import Console

            self._console = Console(highlight=False, soft_wrap=True)

    def received(self, source: str, event_id: str | None, event_type: str, resource: str | None) -> None:
        """An event was committed, or had been before."""
        facts = {"source": source, "event_id": event_id, "event_type": event_type, "resource": resource}
        self._print("received", facts)

    def refused(self, source: str, status: int) -> None:
        """A request did not get in; the log tells why."""
        self._print("refused", {"source": source, "status": status})

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
        }
        self._print(str(getattr(settled.outcome, "value", settled.outcome)), facts)

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
            line.stylize(COLOURS.get(what, OTHER_COLOUR), 10, 10 + len(what))
            self._console.print(line)


class ShownIntake(Intake):
    """An intake that also tells what came in."""

    passing: Passing

    async def receive(self, request: Request) -> Response:
        """Answer as any intake does, then print the events of the request."""
        response = await super().receive(request)
        if request.method != "POST":
            return response
        source = self.inbox.sources.get(request.source)
        if source is None or not 200 <= response.status < 300:
            self.passing.refused(request.source, response.status)
            return response
        try:
            events = source.read(request)
        except HookledgerError:
            self.passing.received(source.name, None, "unreadable", None)
            return response
        for event in events:
            self.passing.received(source.name, event.event_id, event.event_type, event.resource)
        return response


def _in_words(facts: dict[str, Any]) -> str:
    place = [facts["source"], *[facts.get(name) or "-" for name in ("event_id", "event_type", "resource")]]
    words = [str(facts["status"])] if "status" in facts else place[1:]
    words.insert(0, place[0])
    if facts.get("handler"):
        words.append(f"by {facts['handler']}")
    if facts.get("attempt", 1) > 1:
        words.append(f"attempt {facts['attempt']}")
    if facts.get("error"):
        words.append(f"{facts['error']}"[:LONGEST_ERROR])
    return "  ".join(one_line(str(word)) for word in words)
