"""A program of the tests: serves the receiver on a socket that it inherits.

    python -m tests.adapters.serve KIND FD OPTIONS

KIND is one of tests.adapters.kinds, OPTIONS are those of tests.adapters.applications as JSON.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
from typing import Any

import uvicorn
import waitress
from gunicorn.app.base import BaseApplication
from werkzeug.serving import make_server

from tests.adapters import applications
from tests.adapters.applications import Options


def _uvicorn(application: Any, listener: socket.socket, parser: str) -> None:
    config = uvicorn.Config(application, http=parser, log_config=None, lifespan="on")  # type: ignore[arg-type]
    uvicorn.Server(config).run(sockets=[listener])


class _Gunicorn(BaseApplication):
    def __init__(self, options: Options, listener: socket.socket) -> None:
        self._options = options
        self._bind = f"fd://{listener.fileno()}"
        super().__init__()

    def load_config(self) -> None:
        settings = {"bind": self._bind, "worker_class": "gthread", "threads": 8, "accesslog": "-"}
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return applications.flask_application(self._options)


def main(kind: str, listener: socket.socket, options: Options) -> None:
    """Serve until a signal ends it."""
    match kind:
        case "starlette":
            _uvicorn(applications.starlette_application(options), listener, "httptools")
        case "starlette-async":
            _uvicorn(applications.starlette_application(options, asynchronous=True), listener, "h11")
        case "fastapi":
            _uvicorn(applications.fastapi_application(options), listener, "httptools")
        case "asgi":
            _uvicorn(applications.receiver_alone(options), listener, "httptools")
        case "flask-gunicorn":
            _Gunicorn(options, listener).run()
        case "flask-waitress":
            waitress.serve(applications.flask_application(options), sockets=[listener], threads=8)
        case "flask-werkzeug":
            make_server(
                "127.0.0.1", 0, applications.flask_application(options), threaded=True, fd=listener.fileno()
            ).serve_forever()
        case _:
            raise ValueError(kind)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    main(sys.argv[1], socket.socket(fileno=int(sys.argv[2])), Options(**json.loads(sys.argv[3])))
