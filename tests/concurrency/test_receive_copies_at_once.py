"""Copies of one event that arrive at the same moment, at several processes (D4, B023)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from tests.adapters.served import serving
from tests.adapters.wire import head, signed
from tests.ledger import Ledger

COPIES = 50
SERVERS = ("starlette", "starlette-async", "starlette", "starlette-async")


def test_b023_fifty_copies_at_once_over_four_processes_are_one_event(database_url: str) -> None:
    ledger = Ledger(database_url)
    with ExitStack() as stack, ThreadPoolExecutor(COPIES) as threads:
        servers = [stack.enter_context(serving(kind, database_url)) for kind in SERVERS]
        for round in range(8):
            event, body = f"evt-{round}", b'{"n":%d}' % round
            together = threading.Barrier(COPIES)

            def send(
                number: int, event: str = event, body: bytes = body, together: threading.Barrier = together
            ) -> int:
                served = servers[number % len(servers)]
                with served.connect() as wire:
                    lines = [("Content-Length", str(len(body))), *signed(body, event)]
                    request = head("POST", served.path(), lines) + body
                    wire.send(request[:-1])
                    together.wait(60)
                    wire.send(request[-1:])
                    return wire.answer().status

            assert list(threads.map(send, range(COPIES))) == [200] * COPIES
            assert ledger.delivery(event).body == body
            assert len([copy for copy in ledger.redeliveries() if copy.event_id == event]) == COPIES - 1
    assert ledger.pending() == [f"evt-{round}" for round in range(8)]
    assert ledger.count("payloads") == 8
    assert ledger.consistent()
