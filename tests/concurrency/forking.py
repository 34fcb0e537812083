"""A program of the tests: on every line of its input it forks a process that serves the receiver on an inherited
socket, and prints `serving PID`. What takes time is imported once, so that a test may kill a hundred of them.

    python -m tests.concurrency.forking KIND FD OPTIONS

KIND and OPTIONS are those of tests.adapters.serve.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys

from tests.adapters.applications import Options
from tests.adapters.serve import main as serve


def main(kind: str, listener: socket.socket, options: Options) -> None:
    """Fork until the input ends."""
    # The children are killed; nobody has to be told.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve(kind, listener, options)
            os._exit(0)
        print(f"serving {pid}", flush=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, stream=sys.stdout)
    main(sys.argv[1], socket.socket(fileno=int(sys.argv[2])), Options(**json.loads(sys.argv[3])))
