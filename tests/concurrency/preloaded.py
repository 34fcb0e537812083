"""A program of the tests: Flask under gunicorn with `preload_app`, where everything was used before the fork.

python -m tests.concurrency.preloaded FD DATABASE_URL
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import Any

import flask
from gunicorn.app.base import BaseApplication
from sqlalchemy import create_engine, text

from hookledger.http import Headers, Request
from hookledger.receive import Intake
from hookledger_flask import receiver
from tests.adapters.applications import Options, inbox
from tests.adapters.wire import signed


def application(database_url: str) -> flask.Flask:
    """The application, after the engine of its receiver has been used, and a receiver on it too."""
    engine = create_engine(database_url)
    with engine.connect() as one, engine.connect() as two:
        one.execute(text("SELECT 1"))
        two.execute(text("SELECT 2"))
    intake = Intake(inbox(Options(database_url)), engine)
    used = Request("hub", "POST", Headers(signed(b"before", "before")), b"before")
    assert intake.receive_blocking(used).status == 200
    made = flask.Flask("application")
    made.register_blueprint(receiver(inbox(Options(database_url)), engine), url_prefix="/webhooks")

    @made.post("/same/<event>")
    def same(event: str) -> tuple[str, int]:
        """Receive through the very intake that was used before the fork."""
        body = flask.request.get_data()
        request = Request("hub", "POST", Headers(signed(body, event)), body)
        return str(os.getpid()), intake.receive_blocking(request).status

    return made


class Preloaded(BaseApplication):
    def __init__(self, listener: socket.socket, database_url: str) -> None:
        self._listener = listener
        self._bind = f"fd://{listener.fileno()}"
        self._database_url = database_url
        super().__init__()

    def load_config(self) -> None:
        settings = {"bind": self._bind, "preload_app": True, "workers": 3, "worker_class": "gthread", "threads": 8}
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return application(self._database_url)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    Preloaded(socket.socket(fileno=int(sys.argv[1])), sys.argv[2]).run()
