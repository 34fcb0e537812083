"""A proxy that follows PostgreSQL's protocol, and does something at a chosen trip of a client to the server.

A trip is what a client sends until it waits for the server to be ready again: a statement with its parameters, BEGIN,
COMMIT, a savepoint. So whatever a client does with a transaction can be struck at each of its steps, one after the
other. https://www.postgresql.org/docs/current/protocol-flow.html
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from sqlalchemy import make_url

CANCEL_REQUEST = 80877102
READY, KEY_DATA = b"Z", b"K"
SYNC, QUERY, TERMINATE = b"S", b"Q", b"X"

Strike = Callable[["Trip"], None]


class Trip:
    """What a client has just sent, and the server has not got yet.

    Args:
        number: of all trips since the last `strike_at`, from 1.
        backend: process id of the server's side.
        words: what is sent, for a person to read.
    """

    def __init__(self, number: int, backend: int, words: str) -> None:
        self.number = number
        self.backend = backend
        self.words = words
        self.instead: str | None = None
        """A statement that the server gets in its place; it has to fail."""


class Trips:
    """Hands trips on to a server.

    Args:
        url: of a database of the server, over TCP or a Unix socket.
    """

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self._host = str(parsed.host or parsed.query["host"])
        self._port = int(str(parsed.port or parsed.query.get("port", 5432)))
        self._listener = socket.create_server(("127.0.0.1", 0))
        port: int = self._listener.getsockname()[1]
        through = parsed.difference_update_query(["host", "port"]).set(host="127.0.0.1", port=port)
        plain = through.update_query_dict({"sslmode": "disable", "gssencmode": "disable"})
        self.url = plain.render_as_string(hide_password=False)
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._at: int | str | None = None
        self._before: Strike | None = None
        self._after: Strike | None = None
        self.trips: list[str] = []
        """What was sent since the last `strike_at`, in words."""
        self.struck: str | None = None
        """At which trip the last strike hit, in words; None if it was never reached."""
        threading.Thread(target=self._accept, daemon=True).start()

    def strike_at(self, at: int | str | None, *, before: Strike | None = None, after: Strike | None = None) -> None:
        """Count from now, and do something at that trip.

        Args:
            at: the number of the trip, from 1, or words of the first that is meant; None for none.
            before: done before the server gets it.
            after: done when the server has done it and said so, and before the client hears of it.
        """
        with self._lock:
            self._at, self._before, self._after = at, before, after
            self.trips, self.struck = [], None

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = self._connect()
        self._sockets.append(server)
        try:
            self._talk(_Stream(client), _Stream(server))
        except (OSError, EOFError):
            pass
        finally:
            for end in (client, server):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def _connect(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{self._host}/.s.PGSQL.{self._port}")
        return server

    def _talk(self, client: _Stream, server: _Stream) -> None:
        startup = client.startup()
        server.send(startup)
        if struct.unpack("!I", startup[4:8])[0] == CANCEL_REQUEST:
            server.drain()
            return
        backend = 0
        # Signing in: the client answers what the server asks, until that is ready.
        while True:
            kind, message = server.message()
            client.send(message)
            if kind == KEY_DATA:
                (backend,) = struct.unpack("!I", message[5:9])
            elif kind == READY:
                break
            elif kind == b"R" and message[5:9] != b"\0\0\0\0" and message[5:9] != struct.pack("!I", 12):
                server.send(client.message()[1])
        while True:
            self._trip(client, server, backend)

    def _trip(self, client: _Stream, server: _Stream, backend: int) -> None:
        sent = b""
        kinds: list[bytes] = []
        while not kinds or kinds[-1] not in (SYNC, QUERY):
            kind, message = client.message()
            if kind == TERMINATE:
                server.send(message)
                raise EOFError
            kinds.append(kind)
            sent += message
        trip, strikes = self._count(backend, _in_words(sent))
        if strikes and self._before is not None:
            self._before(trip)
        if trip.instead is not None:
            statement = trip.instead.encode() + b"\0"
            sent = QUERY + struct.pack("!I", len(statement) + 4) + statement
        with contextlib.suppress(OSError):
            server.send(sent)
        answer = b""
        lost = False
        while True:
            try:
                kind, message = server.message()
            except (OSError, EOFError):
                lost = True
                break
            answer += message
            if kind == READY:
                break
        if strikes and self._after is not None and not lost:
            self._after(trip)
            lost = server.closed()
            # What the server still says, if it was cut, takes the place of its answer: that one is lost.
            answer = server.drain() if lost else answer
        client.send(answer)
        if lost:
            raise EOFError

    def _count(self, backend: int, words: str) -> tuple[Trip, bool]:
        with self._lock:
            if words.startswith("LISTEN"):
                # Of a worker's other connection, at any time.
                return Trip(0, backend, words), False
            self.trips.append(words)
            trip = Trip(len(self.trips), backend, words)
            strikes = self._at in words if isinstance(self._at, str) else self._at == trip.number
            if strikes:
                self.struck = words
                self._at = None
            return trip, strikes

    def close(self) -> None:
        for each in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Stream:
    """One side of a connection, read in messages."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._file = end.makefile("rb")

    def send(self, data: bytes) -> None:
        self._end.sendall(data)

    def startup(self) -> bytes:
        """The first message, which has no kind."""
        length = self._exactly(4)
        return length + self._exactly(struct.unpack("!I", length)[0] - 4)

    def message(self) -> tuple[bytes, bytes]:
        """The kind of the next message, and all of it."""
        head = self._exactly(5)
        return head[:1], head + self._exactly(struct.unpack("!I", head[1:])[0] - 4)

    def closed(self) -> bool:
        """Whether the other side has closed, or has said that it is going to."""
        self._end.setblocking(False)
        try:
            return bool(self._end.recv(1, socket.MSG_PEEK)) or True
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self._end.setblocking(True)

    def drain(self) -> bytes:
        """All that comes until the other side closes."""
        with contextlib.suppress(OSError):
            return self._file.read()
        return b""

    def _exactly(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError
        return data


def _in_words(sent: bytes) -> str:
    """The text of a statement, as far as a person needs it; one that was prepared has none."""
    kind, rest = sent[:1], sent[5:]
    if kind == QUERY:
        return rest.partition(b"\0")[0].decode()
    if kind == b"P":
        return rest.partition(b"\0")[2].partition(b"\0")[0].decode()[:200]
    return "a prepared statement"
