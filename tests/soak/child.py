"""A process of the soak.

    python -m tests.soak.child receiver starlette FD
    python -m tests.soak.child worker tests.soak.hooks:sync

The database is that of DATABASE_URL. It ends when its parent does.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from hookledger.demo.child import end_with
from hookledger.engine import create
from tests.faults.forking import PREFIX


def serve_starlette(listener: socket.socket) -> None:
    """Starlette under uvicorn, on an asynchronous engine."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from hookledger_starlette import Receiver
    from tests.soak.hooks import asynchronous

    app = Starlette(routes=[Mount(PREFIX, Receiver(asynchronous, create(asynchronous=True)))])
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=5)
    uvicorn.Server(config).run(sockets=[listener])


def serve_flask(listener: socket.socket) -> None:
    """Flask under gunicorn."""
    import flask
    from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]

    from hookledger_flask import receiver
    from tests.soak.hooks import sync

    class Application(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
        def load_config(self) -> None:
            wanted = {
                "bind": f"fd://{listener.fileno()}",
                "worker_class": "gthread",
                "threads": 8,
                "loglevel": "warning",
                "graceful_timeout": 5,
                "control_socket_disable": True,
            }
            for name, value in wanted.items():
                if name in self.cfg.settings:
                    self.cfg.set(name, value)

        def load(self) -> Any:
            app = flask.Flask("soak")
            app.register_blueprint(receiver(sync, create()), url_prefix=PREFIX)
            return app

    Application().run()


SERVERS = {"starlette": serve_starlette, "flask": serve_flask}


def main() -> None:
    """Run what the arguments say."""
    end_with(os.getppid())
    role, name, *rest = sys.argv[1:]
    if role == "receiver":
        SERVERS[name](socket.socket(fileno=int(rest[0])))
        return
    from hookledger.cli import main as command_line

    sys.argv = ["hookledger", "worker", name, *rest]
    command_line()


if __name__ == "__main__":
    main()
