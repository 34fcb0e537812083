"""A served receiver, as the tests see it: a port to send to, a ledger to look into, and a log."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Engine, create_engine, text

from tests.adapters.kinds import WSGI
from tests.adapters.wire import Answer, HeaderList, Wire, chunked, head, signed
from tests.processes import Child

ROOT = Path(__file__).parent.parent.parent


def event_id() -> str:
    """An id that no other test uses."""
    return f"evt_{uuid.uuid4().hex}"


@dataclass(frozen=True)
class Stored:
    """A delivery as the ledger holds it."""

    body: bytes
    headers: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Served:
    """A server in a process of its own."""

    kind: str
    port: int
    child: Child
    engine: Engine

    @property
    def is_wsgi(self) -> bool:
        return self.kind in WSGI

    def path(self, source: str = "hub") -> str:
        """Where the receiver of a source is."""
        return f"/{source}" if self.kind == "asgi" else f"/webhooks/{source}"

    def connect(self) -> Wire:
        return Wire(self.port)

    def request(self, method: str, path: str, headers: HeaderList = (), body: bytes = b"") -> Answer:
        """One request on a connection of its own, and its answer. All is sent before the answer is read, as most
        clients do: a server that closes before it has taken all fails the test."""
        with self.connect() as wire:
            wire.send(head(method, path, headers) + body)
            return wire.answer(method)

    def post(self, body: bytes, event: str, *, path: str | None = None, headers: HeaderList = ()) -> Answer:
        """Send a signed body with its Content-Length."""
        lines = [("Content-Length", str(len(body))), *signed(body, event), *headers]
        return self.request("POST", path or self.path(), lines, body)

    def post_chunked(self, pieces: Sequence[bytes], event: str, *, headers: HeaderList = ()) -> Answer:
        """Send a signed body in chunks, without Content-Length."""
        lines = [("Transfer-Encoding", "chunked"), *signed(b"".join(pieces), event), *headers]
        return self.request("POST", self.path(), lines, chunked(pieces))

    def stored(self, event: str) -> list[Stored]:
        """What the ledger holds of an event."""
        query = text(
            "SELECT p.body, p.headers FROM hookledger.deliveries d JOIN hookledger.payloads p ON p.id = d.payload_id"
            " WHERE d.event_id = :event"
        )
        with self.engine.connect() as connection:
            rows = connection.execute(query, {"event": event}).all()
        return [Stored(bytes(row.body), [(name, value) for name, value in row.headers]) for row in rows]

    def count(self) -> int:
        """How many deliveries the ledger holds."""
        with self.engine.connect() as connection:
            return int(connection.execute(text("SELECT count(*) FROM hookledger.deliveries")).scalar_one())

    def mark(self) -> Callable[[], str]:
        """Gives what the server has logged since this call."""
        start = len(self.child.output)
        return lambda: self.child.output[start:]

    def peak_memory(self) -> int:
        """The most memory that any process of the server has ever used, in bytes."""
        processes = [psutil.Process(self.child.pid), *psutil.Process(self.child.pid).children(recursive=True)]
        return max(_peak(process.pid) for process in processes)


def _peak(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no VmHWM of process {pid}")


@contextmanager
def serving(kind: str, database_url: str, **options: Any) -> Iterator[Served]:
    """A receiver that is served until the end of the block; the options are those of `applications.Options`."""
    engine = create_engine(database_url)
    # The socket listens before the server is there, so nobody has to wait for it or guess a free port.
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        port: int = listener.getsockname()[1]
        descriptor = listener.fileno()
        arguments = [kind, str(descriptor), json.dumps({"database_url": database_url, **options})]
        child = Child("-m", "tests.adapters.serve", *arguments, cwd=ROOT, pass_fds=[descriptor])
    try:
        with child:
            yield Served(kind, port, child, engine)
    finally:
        engine.dispose()
