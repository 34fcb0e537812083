"""A program of the tests: for every line of its input it forks a receiver or a worker. What takes time is imported
once.

    python -m tests.faults.forking

A line is `Wanted` as JSON; the answer is a line `started PID PORT`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

import hookledger.cli.worker
import hookledger.ledger.ready
import hookledger.receive
import hookledger.worker  # noqa: F401 - so that no fork has to
from hookledger.cli import main as command_line
from hookledger.engine import create
from hookledger_starlette import Receiver
from tests.faults import hooks

PREFIX = "/webhooks"


@dataclass(frozen=True)
class Wanted:
    """What to start.

    Args:
        role: `receiver` or `worker`.
        url: of the database.
        inbox: the name of one in `hooks`; the asynchronous one is served with an asynchronous engine.
        log: file that the output goes to.
        options: of `hookledger worker`.
        clock: seconds that its clock is ahead.
    """

    role: str
    url: str
    inbox: str
    log: str
    options: list[str] = field(default_factory=list)
    clock: float = 0.0

    @property
    def line(self) -> str:
        return json.dumps(asdict(self))


def receive(wanted: Wanted, listener: socket.socket) -> None:
    """Serve the receiver until the process is ended."""
    engine: Any = create(wanted.url, asynchronous=True) if wanted.inbox == "asynchronous" else create(wanted.url)
    app = Starlette(routes=[Mount(PREFIX, Receiver(getattr(hooks, wanted.inbox), engine))])
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


def work(wanted: Wanted) -> None:
    """The command `hookledger worker`."""
    os.environ["DATABASE_URL"] = wanted.url
    sys.argv = ["hookledger", "worker", f"tests.faults.hooks:{wanted.inbox}", *wanted.options]
    command_line()


def set_clock(ahead: float) -> None:
    """Let Python's wall clock be that many seconds ahead of the machine's."""
    right = time.time
    time.time = lambda: right() + ahead


def main() -> None:
    """Fork until the input ends."""
    # They are killed; nobody has to be told.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        wanted = Wanted(**json.loads(line))
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
            port = listener.getsockname()[1] if wanted.role == "receiver" else 0
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                output = os.open(wanted.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                for descriptor in (1, 2):
                    os.dup2(output, descriptor)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                if wanted.clock:
                    set_clock(wanted.clock)
                if port:
                    receive(wanted, listener)
                else:
                    work(wanted)
                os._exit(0)
        print(f"started {pid} {port}", flush=True)


if __name__ == "__main__":
    main()
