"""HTTP by hand over a socket, for requests that no well-behaved client would send."""

from __future__ import annotations

import http.client
import io
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.adapters.hub import signature

HeaderList = Sequence[tuple[str, str]]
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class _Incoming(io.RawIOBase):
    """What comes in; a time that is over does not make it unusable, as it does with that of `makefile`."""

    def __init__(self, incoming: socket.socket) -> None:
        self._socket = incoming

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._socket.recv_into(buffer)


class _Reader(io.BufferedReader):
    """Stays open when a response that was read from it is closed."""

    def makefile(self, *_: Any) -> Self:
        return self

    def close(self) -> None:
        pass


class Wire:
    """One connection to a server on this machine."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        # One for all answers of the connection: what follows an answer may have been read together with it.
        self._reader = _Reader(_Incoming(self._socket))

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_while_taken(self, pieces: Iterable[bytes]) -> None:
        """Send on until all is sent or the server has answered and closed."""
        try:
            for piece in pieces:
                self._socket.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            return

    def silent_for(self, seconds: float) -> bool:
        """Whether the server sends nothing in that time."""
        self._socket.settimeout(seconds)
        try:
            self._reader.peek(1)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(PATIENCE_SECONDS)
        return False

    def answer(self, method: str = "POST") -> Answer:
        """The next response."""
        response = http.client.HTTPResponse(self._reader, method=method)  # type: ignore[arg-type]
        response.begin()
        return Answer(response.status, tuple(response.getheaders()), response.read())

    def answer_or_none(self) -> Answer | None:
        """The next response; None if the server just closes the connection."""
        try:
            return self.answer()
        except (http.client.RemoteDisconnected, ConnectionResetError):
            return None

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def head(method: str, path: str, headers: HeaderList) -> bytes:
    """The head of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: hooks.test", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunked(pieces: Iterable[bytes]) -> bytes:
    """A body in chunks, with its end."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece) + b"0\r\n\r\n"


def signed(body: bytes, event_id: str) -> list[tuple[str, str]]:
    """The headers that make a body verify, and name its event."""
    return [("X-Hub-Signature-256", signature(body)), ("X-Event-Id", event_id)]
