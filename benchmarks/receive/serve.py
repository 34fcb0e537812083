"""Serves one receiver in this process: `python -m benchmarks.receive.serve NAME FILE_DESCRIPTOR ENGINE UVICORN`.

The file descriptor is that of a socket that listens already, so a client may connect before the server is up.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.processes import allow_many_descriptors, end_with_parent
from benchmarks.receive.applications import (
    THREADS,
    Bare,
    Shared,
    Single,
    flask_bare,
    flask_ours,
    flask_single,
    starlette_bare,
    starlette_ours,
)

KEEP_ALIVE = 60  # seconds

ASGI: dict[str, Callable[[str], Any]] = {
    "ours": starlette_ours,
    "bare": lambda _: Bare(),
    "starlette_bare": lambda _: starlette_bare(),
    "shared": lambda _: Shared(),
    "single": lambda _: Single(autocommit=False),
    "single_autocommit": lambda _: Single(autocommit=True),
}
UVICORN: dict[str, dict[str, Any]] = {
    "plain": {"http": "h11", "loop": "asyncio"},
    # What is installed; `versions` tells.
    "standard": {},
}
WSGI: dict[str, Callable[[], Any]] = {
    "flask_ours": flask_ours,
    "flask_bare": flask_bare,
    "flask_single": lambda: flask_single(autocommit=False),
    "flask_single_autocommit": lambda: flask_single(autocommit=True),
}


def main() -> None:
    """Serve until the process is ended."""
    end_with_parent(os.getppid())
    allow_many_descriptors()
    # Under a burst there is a warning for every request that is refused.
    logging.getLogger("hookledger").setLevel(logging.ERROR)
    name, descriptor, engine, uvicorn = sys.argv[1:]
    if name in ASGI:
        _serve_asgi(ASGI[name](engine), int(descriptor), UVICORN[uvicorn])
    else:
        _serve_wsgi(WSGI[name], int(descriptor))


def _serve_asgi(app: Any, descriptor: int, made_of: dict[str, Any]) -> None:
    import uvicorn

    config = uvicorn.Config(app, **made_of, log_level="warning", access_log=False, timeout_keep_alive=KEEP_ALIVE)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=descriptor)])


def _serve_wsgi(make: Callable[[], Any], descriptor: int) -> None:
    from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]

    class Application(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
        def load_config(self) -> None:
            wanted = {
                "bind": f"fd://{descriptor}",
                "worker_class": "gthread",
                "workers": 1,
                "threads": THREADS,
                "keepalive": KEEP_ALIVE,
                "loglevel": "warning",
                # Newer releases would leave a socket in the home folder.
                "control_socket_disable": True,
            }
            for setting, value in wanted.items():
                if setting in self.cfg.settings:
                    self.cfg.set(setting, value)

        def load(self) -> Any:
            # In the worker, after the fork.
            return make()

    Application().run()


if __name__ == "__main__":
    main()
