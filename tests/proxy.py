"""A TCP proxy on this machine that can fall silent: it takes bytes, hands none on, and closes nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

from sqlalchemy import make_url


class Proxy:
    """Hands bytes on to a server.

    Args:
        url: of a database of the server, over TCP or a Unix socket.
    """

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self._host = str(parsed.host or parsed.query["host"])
        self._port = int(str(parsed.port or parsed.query.get("port", 5432)))
        self._flows = threading.Event()
        self._flows.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        through = parsed.difference_update_query(["host", "port"]).set(host="127.0.0.1", port=self.port)
        self.url = through.render_as_string(hide_password=False)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def pause(self) -> None:
        """Hand nothing on from now; new connections are taken, and get no answer."""
        self._flows.clear()

    def resume(self) -> None:
        """Hand on what has come meanwhile, and go on."""
        self._flows.set()

    def forget(self) -> None:
        """Keep silent for ever on the connections there are, and serve new ones: as a firewall does that has lost
        its table. Nobody is told."""
        self._flows = threading.Event()
        self._flows.set()

    def replace(self) -> None:
        """Close all connections, and serve new ones at the same address."""
        self._close()
        self._sockets = []
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        self._flows.set()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                self._sockets.append(client)
                threading.Thread(target=self._serve, args=(client, self._flows), daemon=True).start()

    def _serve(self, client: socket.socket, flows: threading.Event) -> None:
        flows.wait()
        try:
            server = self._connect()
        except OSError:
            client.close()
            return
        self._sockets.append(server)
        threading.Thread(target=self._pump, args=(client, server, flows), daemon=True).start()
        self._pump(server, client, flows)

    def _connect(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{self._host}/.s.PGSQL.{self._port}")
        return server

    def _pump(self, source: socket.socket, target: socket.socket, flows: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                flows.wait()
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        for each in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()
        self._flows.set()
