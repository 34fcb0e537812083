"""How an attempt is put on the wire: rightly, wrongly, in pieces, and not to its end."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from hypothesis import strategies as st

from hookledger.http import Request

PATIENCE_SECONDS = 60.0
STATUS = re.compile(rb"^HTTP/1\.[01] (\d{3})", re.MULTILINE)
LENGTHS = ("-1", "+5", "0x10", "1e3", "", "abc", "5, 5", "5 5", "9" * 30, "4294967296", "\xb2", " ", "00", "1_0")
CHUNKS = (
    b"zz\r\nab\r\n0\r\n\r\n",
    b"-1\r\n",
    b"f" * 40 + b"\r\n",
    b"2\nab\n0\n\n",
    b"0\r\nX" * 2000,
    b"\x00",
    b"2;a=\r\n",
)


class Framing(Enum):
    """How the server is told where the body ends."""

    LENGTH = "its length"
    CHUNKED = "chunks"
    OLD = "HTTP/1.0"
    NONE = "not at all"
    SHORT = "a length that is more than there is"
    LONG = "a length that is less than there is"
    BOTH = "length and chunks"
    BAD_LENGTH = "a length that is none"
    BAD_CHUNKS = "chunks that are none"
    BROKEN_CHUNKS = "chunks that break off"
    GARBAGE = "a head with wrong bytes in it"


RIGHT = {Framing.LENGTH, Framing.CHUNKED, Framing.OLD}


@dataclass(frozen=True)
class Framed:
    """How one request is sent.

    Args:
        framing: how its end is told.
        cuts: where its chunks, and the pieces that are handed to the socket, end, counted round.
        number: which of the wrong values, or by how much it is wrong.
        garbage: what stands in the head at a place, counted round.
    """

    framing: Framing = Framing.LENGTH
    cuts: tuple[int, ...] = ()
    number: int = 1
    garbage: tuple[tuple[int, bytes], ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether the server has to take it."""
        return self.framing in RIGHT

    def wire(self, request: Request, path: str) -> list[bytes]:
        """The pieces that are sent, one after the other."""
        head, body = self._head(request, path), self._body(request.body)
        return _cut(head + body, self.cuts)

    def _head(self, request: Request, path: str) -> bytes:
        version = "1.0" if self.framing is Framing.OLD else "1.1"
        target = f"{path}?{request.query}" if request.query else path
        lines = [f"{request.method} {target} HTTP/{version}", "Host: hooks.test", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in [*request.headers, *self._ends(len(request.body))]]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
        for place, some in self.garbage if self.framing is Framing.GARBAGE else ():
            at = place % len(head)
            head = head[:at] + some + head[at + 1 :]
        return head

    def _ends(self, length: int) -> list[tuple[str, str]]:
        chunked = ("Transfer-Encoding", "chunked")
        match self.framing:
            case Framing.CHUNKED | Framing.BAD_CHUNKS | Framing.BROKEN_CHUNKS:
                return [chunked]
            case Framing.BOTH:
                return [("Content-Length", str(length)), chunked]
            case Framing.SHORT:
                return [("Content-Length", str(length + self.number))]
            case Framing.LONG:
                return [("Content-Length", str(max(0, length - self.number)))]
            case Framing.BAD_LENGTH:
                return [("Content-Length", LENGTHS[self.number % len(LENGTHS)])]
            case Framing.NONE:
                return []
        return [("Content-Length", str(length))]

    def _body(self, body: bytes) -> bytes:
        if self.framing in (Framing.CHUNKED, Framing.BOTH):
            return _chunks(body, self.cuts) + b"0\r\n\r\n"
        if self.framing is Framing.BROKEN_CHUNKS:
            whole = _chunks(body, self.cuts)
            return whole[: len(whole) - self.number % 20]
        if self.framing is Framing.BAD_CHUNKS:
            return _chunks(body, self.cuts) + CHUNKS[self.number % len(CHUNKS)]
        return body


framed = st.builds(
    Framed,
    st.sampled_from([Framing.LENGTH, Framing.CHUNKED, *Framing]),
    st.lists(st.integers(0, 2000), max_size=4).map(tuple),
    st.integers(1, 60),
    st.lists(st.tuples(st.integers(0, 600), st.binary(max_size=3)), min_size=1, max_size=3).map(tuple),
)


@dataclass(frozen=True)
class Heard:
    """What came back until the server closed the connection.

    Args:
        statuses: of the responses, without 100.
        hangs: whether it neither answered nor closed.
    """

    statuses: tuple[int, ...]
    hangs: bool


def exchange(port: int, pieces: list[bytes], *, is_right: bool) -> Heard:
    """Send the pieces, and read on until the server closes. What is not right is ended by us, as a sender does that
    breaks off."""
    heard = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for piece in pieces:
                connection.sendall(piece)
            if not is_right:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has answered and closed
        try:
            while more := connection.recv(65536):
                heard += more
        except TimeoutError:
            return Heard(_statuses(heard), hangs=True)
        except ConnectionResetError:
            pass
    return Heard(_statuses(heard), hangs=False)


def _statuses(heard: bytes) -> tuple[int, ...]:
    return tuple(int(found) for found in STATUS.findall(heard) if found != b"100")


def _cut(whole: bytes, cuts: tuple[int, ...]) -> list[bytes]:
    places = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    return [whole[start:end] for start, end in pairwise(places)]


def _chunks(body: bytes, cuts: tuple[int, ...]) -> bytes:
    return b"".join(b"%X\r\n%b\r\n" % (len(piece), piece) for piece in _cut(body, cuts) if piece)
