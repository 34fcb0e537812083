"""A served receiver with the senders of the cases, its ledger, and a worker for what it received."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from hookledger import Delivery, Inbox
from tests.adapters.served import Served
from tests.adapters.wire import Answer, chunked
from tests.cases.sources import HeaderPairs, sources
from tests.ledger import Ledger
from tests.ways import WAYS

TABLES = "payloads, deliveries, pending, redeliveries, dead_letters, failures, effects, resource_state"


class CaseReceiver:
    """What is sent goes over HTTP to a server in a process of its own.

    Args:
        served: the server.
    """

    def __init__(self, served: Served) -> None:
        self.served = served
        self.url = served.engine.url.render_as_string(hide_password=False)
        self.ledger = Ledger(self.url)

    def empty(self) -> None:
        """Forget what was received until now."""
        self.ledger.run(f"TRUNCATE {TABLES}")

    def post(self, source: str, body: bytes, headers: HeaderPairs = (), *, pieces: Sequence[bytes] = ()) -> Answer:
        """Send a body as it is, with its length or in chunks."""
        framing = ("Transfer-Encoding", "chunked") if pieces else ("Content-Length", str(len(body)))
        sent = chunked(pieces) if pieces else body
        return self.served.request("POST", self.served.path(source), [framing, *headers], sent)

    def bodies(self) -> list[bytes]:
        """Of all deliveries, in the order of their arrival."""
        return [row.body for row in self.ledger.deliveries()]

    def work(self, source: str) -> list[Any]:
        """Run a worker until nothing is due; what its handler saw of the source, in that order."""
        seen: list[Any] = []
        inbox = Inbox(*sources())

        @inbox.accumulate(source, name="see")
        def see(delivery: Delivery, tx: Connection) -> None:
            seen.append(delivery.data)

        WAYS[0].work(self.url, inbox, slots=1)
        return seen
