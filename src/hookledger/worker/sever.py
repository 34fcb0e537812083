"""Cutting a connection that somebody else still uses, so that PostgreSQL releases its locks at once."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

from hookledger.ledger.cancel import cancel, prepare, send


def sever(driver_connection: Any, seconds: float) -> None:
    """Cancel what the connection runs and shut its socket.

    The server then rolls its transaction back. Whoever waits on the connection gets an error; libpq's own
    functions to close it must not be called from another thread.
    https://www.postgresql.org/docs/current/libpq-threading.html

    Args:
        driver_connection: psycopg's.
        seconds: how long to wait at the most for the server to take the request to cancel.
    """
    pgconn = driver_connection.pgconn
    again = None
    with contextlib.suppress(Exception):
        again = prepare(pgconn)
        cancel(pgconn, seconds / 2)
    with contextlib.suppress(OSError, ValueError):
        copy = socket.socket(fileno=os.dup(pgconn.socket))
        try:
            copy.shutdown(socket.SHUT_RDWR)
        finally:
            copy.close()
    if again is not None:
        # A statement that was sent just after the first request would run on, with its locks: the server does not
        # see that nobody listens any more.
        send(again, seconds / 2)
