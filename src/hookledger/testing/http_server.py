"""The receiver in a real HTTP server, in a thread of the test's process."""

from __future__ import annotations

import importlib.util
import socket
import threading
import time
from typing import Any

from sqlalchemy import Engine

from hookledger.errors import SetupError
from hookledger.inbox import Inbox
from hookledger.testing.client import OverHttp

START_SECONDS = 30.0
STOP_SECONDS = 10.0
ANSWER_SECONDS = 30.0


def over_http(inbox: Inbox, engine: Engine) -> OverHttp:
    """Serve a receiver of the inbox on a free port of 127.0.0.1, and give the way to it.

    Args:
        inbox: of the receiver.
        engine: of its ledger.

    Raises:
        SetupError: if uvicorn is not installed, or the server does not start.
    """
    if importlib.util.find_spec("uvicorn") is None:
        raise SetupError('over="http" needs uvicorn: run pip install uvicorn')
    import uvicorn

    from hookledger_starlette import Receiver

    receiver: Any = Receiver(inbox, engine)
    server = uvicorn.Server(
        uvicorn.Config(receiver, access_log=False, log_config=None, ws="none", timeout_graceful_shutdown=5)
    )
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    thread = threading.Thread(target=server.run, args=([listening],), name="hookledger-receiver", daemon=True)
    thread.start()
    end = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise SetupError("the HTTP server did not start; its log says why")
        time.sleep(0.005)

    def stop() -> None:
        server.should_exit = True
        thread.join(STOP_SECONDS)
        listening.close()

    return OverHttp(listening.getsockname()[1], "", ANSWER_SECONDS, stop)
