"""A receiver that was made, and used, before its server forked: no connection is shared by two processes."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.adapters.wire import Wire, head, signed
from tests.ledger import Ledger
from tests.processes import Child

EVENTS = 200


def test_an_engine_and_a_receiver_used_before_gunicorn_forked(database_url: str, project_root: Path) -> None:
    ledger = Ledger(database_url)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        port: int = listener.getsockname()[1]
        descriptor = listener.fileno()
        child = Child(
            "-m", "tests.concurrency.preloaded", str(descriptor), database_url, cwd=project_root, pass_fds=[descriptor]
        )
    with child, ThreadPoolExecutor(24) as threads:

        def send(number: int) -> tuple[int, str]:
            event, body = f"evt-{number}", b"body %d" % number
            path = "/webhooks/hub" if number % 2 else f"/same/{event}"
            with Wire(port) as wire:
                wire.send(head("POST", path, [("Content-Length", str(len(body))), *signed(body, event)]))
                wire.send(body)
                answer = wire.answer()
            return answer.status, answer.body.decode()

        try:
            answers = list(threads.map(send, range(EVENTS)))
        except OSError as error:
            raise AssertionError(child.output) from error
        output = child.output
    assert {status for status, _ in answers} == {200}, output
    processes = {body for _, body in answers if body.isdigit()}
    assert len(processes) > 1, "several processes have served"
    found = {delivery.event_id: delivery.body for delivery in ledger.deliveries()}
    assert found == {"before": b"before", **{f"evt-{number}": b"body %d" % number for number in range(EVENTS)}}
    assert "Traceback" not in output
    assert ledger.consistent()
