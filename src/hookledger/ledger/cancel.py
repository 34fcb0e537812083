"""Asking the server to give up what a connection runs, from another thread."""

from __future__ import annotations

import selectors
import time
from typing import Any

import psycopg
from psycopg.pq import PollingStatus

_EVENTS = {PollingStatus.READING: selectors.EVENT_READ, PollingStatus.WRITING: selectors.EVENT_WRITE}


def cancel(pgconn: Any, seconds: float) -> bool:
    """Have the server cancel what the connection runs. Returns whether the request was delivered.

    The request goes over a connection of its own, and waiting for that one must not hold Python's lock:
    psycopg's `cancel()` and `blocking()` do, and stop the whole process while the network is silent. So it is
    polled, which libpq can since version 17: https://www.postgresql.org/docs/current/libpq-cancel.html
    With an older libpq nothing is sent.

    Args:
        pgconn: psycopg's `pgconn` of the connection.
        seconds: how long to wait at the most.
    """
    request = prepare(pgconn)
    return request is not None and send(request, seconds)


def prepare(pgconn: Any) -> Any:
    """A request that can be sent later, even when the connection is closed by then; None if none can be made."""
    try:
        return pgconn.cancel_conn()
    except psycopg.Error:
        return None


def send(request: Any, seconds: float) -> bool:
    """Send a request that was prepared. Returns whether it was delivered."""
    end = time.monotonic() + seconds
    try:
        request.start()
        while (status := request.poll()) in _EVENTS:
            with selectors.DefaultSelector() as selector:
                selector.register(request.socket, _EVENTS[status])
                if not selector.select(max(0.0, end - time.monotonic())) and time.monotonic() >= end:
                    return False
    except (psycopg.Error, OSError, ValueError):
        return False
    else:
        return bool(status == PollingStatus.OK)
    finally:
        request.finish()
