"""The load: `python -m benchmarks.receive.generator PORT CONNECTIONS WARM_UP SECONDS MOST BODY FILE`.

Keep-alive connections over HTTP/1.1, each with one request at a time, in one thread on epoll: it takes as little as
it can of the cores that the receiver and the server need. Only answers 2xx count. The events that they acknowledge go
to the file, one id a line, so that each can be looked for in the database.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.processes import end_with_parent
from benchmarks.receive.requests import Requests

HOST = "127.0.0.1"
PATIENCE = 15.0
"""Seconds to wait for the last answers."""
PIECE = 64 * 1024
IP_BIND_ADDRESS_NO_PORT = 24
"""https://man7.org/linux/man-pages/man7/ip.7.html"""
LOOK_EVERY = 0.05


class Connection:
    """One connection, with one request at a time.

    Args:
        port: of the receiver.
        source: our own address, for more connections than one address has ports.
    """

    def __init__(self, port: int, source: str = HOST) -> None:
        self.socket = socket.socket()
        if source != HOST:
            # The port is chosen at connect: at bind, only half of them are, and that slowly.
            self.socket.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            self.socket.bind((source, 0))
        self.socket.connect((HOST, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = 0
        self.answer = b""
        self._received = b""

    def send(self, request: bytes, number: int) -> None:
        """Send a request; it is small enough for the socket's buffer."""
        self.number = number
        self.socket.sendall(request)

    def read(self) -> int | None:
        """Read what came: the status once the answer is complete, 0 if the connection was closed, else None."""
        data = self.socket.recv(PIECE)
        if not data:
            return 0
        if self._received:
            data = self._received + data
        end = data.find(b"\r\n\r\n")
        if end < 0 or len(data) < end + 4 + _content_length(data, end):
            self._received = data
            return None
        self._received = b""
        self.answer = data
        return int(data[9:12])


class Load:
    """Connections that send as fast as they get answers.

    Args:
        port: of the receiver, at 127.0.0.1.
        connections: open at a time.
        requests: to send.
    """

    def __init__(self, port: int, connections: int, requests: Requests) -> None:
        self.acknowledged: list[int] = []
        self.refused: Counter[int] = Counter()
        self.broken = 0
        self.ran_out = False
        self._requests = requests
        self._poll = select.epoll()
        self._open: dict[int, Connection] = {}
        for _ in range(connections):
            connection = Connection(port)
            self._open[connection.socket.fileno()] = connection
            self._poll.register(connection.socket, select.EPOLLIN)
        for connection in list(self._open.values()):
            self._send(connection)

    def run(self, seconds: float) -> float:
        """Go on for a while. Returns the 2xx a second."""
        before, start = len(self.acknowledged), time.perf_counter()
        now = start
        while now - start < seconds and self._open:
            self._turn(sending=True)
            now = time.perf_counter()
        return (len(self.acknowledged) - before) / (now - start)

    def finish(self) -> None:
        """Send no more, and wait for the answers that are due."""
        deadline = time.perf_counter() + PATIENCE
        while self._open and time.perf_counter() < deadline:
            self._turn(sending=False)
        self.broken += len(self._open)

    def _turn(self, *, sending: bool) -> None:
        for descriptor, _ in self._poll.poll(LOOK_EVERY):
            connection = self._open[descriptor]
            status = connection.read()
            if status is None:
                continue
            if 200 <= status < 300:
                self.acknowledged.append(connection.number)
            elif status:
                self.refused[status] += 1
            else:
                self.broken += 1
            if sending and status:
                self._send(connection)
            else:
                self._close(connection)

    def _send(self, connection: Connection) -> None:
        request = self._requests.take()
        if request is None:
            self.ran_out = True
            self._close(connection)
        else:
            connection.send(request, self._requests.taken)

    def _close(self, connection: Connection) -> None:
        del self._open[connection.socket.fileno()]
        self._poll.unregister(connection.socket)
        connection.socket.close()


def _content_length(data: bytes, end: int) -> int:
    at = data.find(b"ontent-length: ")
    if at < 0:
        at = data.find(b"ontent-Length: ")
    if not 0 <= at < end:
        raise ValueError(f"an answer without Content-Length: {data[:200]!r}")
    return int(data[at + 15 : data.index(b"\r", at)])


def main() -> None:
    """Run what the arguments say, and print what became of it as JSON."""
    end_with_parent(os.getppid())
    port, connections, warm_up, seconds, most, body, file = sys.argv[1:]
    requests = Requests(int(most), int(body))
    load = Load(int(port), int(connections), requests)
    load.run(float(warm_up))
    begun = time.process_time()
    rate = load.run(float(seconds))
    used = time.process_time() - begun
    load.finish()
    Path(file).write_text("".join([f"{requests.event_id(number)}\n" for number in load.acknowledged]))
    result = {
        "per_second": rate,
        "acknowledged": len(load.acknowledged),
        "refused": dict(load.refused),
        "broken": load.broken,
        "ran_out": load.ran_out,
        "core_share": used / float(seconds),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
