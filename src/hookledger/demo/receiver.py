"""The receiver in a real HTTP server, in a process of its own: uvicorn for Starlette, gunicorn for Flask."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hookledger.demo.framework import HOST, PREFIX, Framework
from hookledger.demo.hooks import inbox

THREADS = 16
"""Of gunicorn; each answers one request at a time, so there is one for each of the sender's connections."""


def serve(framework: Framework, port: int, on_fork: Callable[[int], None]) -> None:
    """Serve until the process is ended.

    Args:
        framework: which adapter.
        port: to listen on, at 127.0.0.1.
        on_fork: called in each process that the server forks, with the id of the one that forked it.
    """
    if framework is Framework.STARLETTE:
        _serve_starlette(port)
    else:
        _serve_flask(port, on_fork)


def _serve_starlette(port: int) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from hookledger.engine import create
    from hookledger_starlette import Receiver

    engine = create(application_name="hookledger demo receiver")
    app = Starlette(routes=[Mount(PREFIX, Receiver(inbox, engine))])
    uvicorn.run(app, host=HOST, port=port, log_level="warning", access_log=False, timeout_keep_alive=60)


def _serve_flask(port: int, on_fork: Callable[[int], None]) -> None:
    from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]

    def post_fork(arbiter: Any, _: Any) -> None:
        on_fork(arbiter.pid)

    class Application(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
        def load_config(self) -> None:
            wanted = {
                "bind": f"{HOST}:{port}",
                "worker_class": "gthread",
                "workers": 1,
                "threads": THREADS,
                "keepalive": 60,
                "loglevel": "warning",
                "chdir": os.getcwd(),
                "post_fork": post_fork,
                # Newer releases would leave a socket in the home folder.
                "control_socket_disable": True,
            }
            for name, value in wanted.items():
                if name in self.cfg.settings:
                    self.cfg.set(name, value)

        def load(self) -> Any:
            return _flask_application()

    Application().run()


def _flask_application() -> Any:
    from flask import Flask

    from hookledger.engine import create
    from hookledger_flask import receiver

    app = Flask("hookledger_demo")
    engine = create(application_name="hookledger demo receiver")
    app.register_blueprint(receiver(inbox, engine), url_prefix=PREFIX)
    return app
