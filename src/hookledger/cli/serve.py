"""The receiver in a real HTTP server, in a thread of its own: a blocked event loop of the worker cannot stop it."""

from __future__ import annotations

import errno
import importlib.util
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hookledger.cli.errors import WrongUse
from hookledger.errors import HookledgerError

PREFIX = "/webhooks"
STOP_SECONDS = 5
ASGI = Callable[[Any, Any, Any], Any]


class NotServing(HookledgerError):
    """The receiver could not be started. Give another port, or see the log."""


def require_server() -> None:
    """See that an ASGI server is there.

    Raises:
        WrongUse: if not, with the command that installs it.
    """
    if importlib.util.find_spec("uvicorn") is None:
        raise WrongUse('uvicorn is not installed: run pip install "hookledger[demo]"')


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens.

    Raises:
        NotServing: if the port is taken, or the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise NotServing(
                f"port {port} of {host} is in use by another program: stop that one, or give another --port"
            ) from error
        raise NotServing(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
    try:
        yield listening
    finally:
        listening.close()


class HttpServer:
    """uvicorn in a thread, where it leaves the signals of the process alone.

    Args:
        receiver: the ASGI application that takes `/webhooks/{source}`.
        listening: as `listen` gives it.
        on_end: called in that thread when the server has ended, wanted or not.
    """

    def __init__(self, receiver: ASGI, listening: socket.socket, on_end: Callable[[], None]) -> None:
        import uvicorn

        config = uvicorn.Config(
            _below_prefix(receiver),
            access_log=False,
            log_config=None,
            lifespan="off",
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._listening = listening
        self._on_end = on_end
        self._thread = threading.Thread(target=self._serve, name="receiver", daemon=True)

    @property
    def started(self) -> bool:
        """Whether requests are being answered."""
        return bool(self._server.started)

    @property
    def ended(self) -> bool:
        """Whether the thread is over."""
        return not self._thread.is_alive()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Take no further connection, and let the requests that are being answered end."""
        self._server.should_exit = True

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join(STOP_SECONDS + 1)

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._listening])
        finally:
            self._on_end()


def _below_prefix(receiver: ASGI) -> ASGI:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not scope["path"].startswith(f"{PREFIX}/"):
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 404, "headers": headers})
            await send({"type": "http.response.body", "body": f"POST to {PREFIX}/SOURCE\n".encode()})
            return
        await receiver(scope, receive, send)

    return application
