"""A burst: `python -m benchmarks.growth.burst_client PORT CONNECTIONS REQUESTS BODY FILE`.

Opens all connections, prints a line, waits for a line on stdin, and then sends on all of them at once; what is over
the number of connections follows as answers come. The ids of the events that were acknowledged go to the file.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.processes import allow_many_descriptors, end_with_parent
from benchmarks.receive.generator import Connection
from benchmarks.receive.requests import Requests

PORTS = 10_000
"""Connections from one address of ours."""
AT_A_TIME = 200
"""Connections that are opened before the receiver gets a moment to take them."""
PATIENCE = 60.0
"""Seconds to wait for the answers."""


def main() -> None:
    """Run what the arguments say, and print what became of it as JSON."""
    end_with_parent(os.getppid())
    allow_many_descriptors()
    port, connections, count, body, file = sys.argv[1:]
    requests = Requests(int(count), int(body))
    opened = _open(int(port), int(connections))
    print("connected", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    acknowledged, statuses, told = _send_all(opened, requests)
    result = {
        "seconds": round(time.perf_counter() - start, 2),
        "acknowledged": len(acknowledged),
        "statuses": dict(statuses),
        "told_to_come_again": told,
    }
    Path(file).write_text("".join([f"{requests.event_id(number)}\n" for number in acknowledged]))
    print(json.dumps(result), flush=True)


def _open(port: int, count: int) -> dict[int, Connection]:
    opened: dict[int, Connection] = {}
    for number in range(count):
        connection = Connection(port, f"127.0.0.{2 + number // PORTS}")
        opened[connection.socket.fileno()] = connection
        if number % AT_A_TIME == AT_A_TIME - 1:
            time.sleep(0.02)
    return opened


def _send_all(opened: dict[int, Connection], requests: Requests) -> tuple[list[int], Counter[str], int]:
    """What was acknowledged, the answers by status, and how many of the 503 have a Retry-After."""
    acknowledged: list[int] = []
    statuses: Counter[str] = Counter()
    told = 0
    poll = select.epoll()
    for descriptor, connection in opened.items():
        poll.register(descriptor, select.EPOLLIN)
        _send_next(connection, requests)
    waiting = len(opened)
    deadline = time.perf_counter() + PATIENCE
    while waiting and time.perf_counter() < deadline:
        for descriptor, _ in poll.poll(0.1):
            connection = opened[descriptor]
            status = connection.read()
            if status is None:
                continue
            statuses[str(status) if status else "broken"] += 1
            if 200 <= status < 300:
                acknowledged.append(connection.number)
            if status == 503 and b"retry-after:" in connection.answer.lower():
                told += 1
            if not status or not _send_next(connection, requests):
                poll.unregister(descriptor)
                connection.socket.close()
                waiting -= 1
    if waiting:
        statuses["unanswered"] = waiting
    return acknowledged, statuses, told


def _send_next(connection: Connection, requests: Requests) -> bool:
    request = requests.take()
    if request is None:
        return False
    connection.send(request, requests.taken)
    return True


if __name__ == "__main__":
    main()
