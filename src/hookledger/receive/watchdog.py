"""Cuts a transaction that does not end: cancelled at the server, and if that does not help, its socket is shut.

A commit that waits for a lock of somebody else, or on a network that has gone silent, would otherwise keep its
thread or task until the lock is released or TCP gives up, which may be never. Nothing is asked of the server for
this; watching costs a few system calls a transaction, and a thread that looks ten times a second while there are
any.
"""

from __future__ import annotations

import contextlib
import enum
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Engine, event

from hookledger.ledger.cancel import cancel

CONNECT_SECONDS = 3
"""The longest time to connect, where the engine has none of its own; psycopg's is over two minutes."""
GRACE = 0.5
"""Seconds that a cancelled transaction has to end before its socket is shut."""
CANCEL_WITHIN = 2.0
LOOK_EVERY = 0.1
LINGER = 10.0
"""Seconds without a transaction after which the thread that watches ends; the next one starts it again."""


class Cut(enum.Enum):
    """How a transaction was cut."""

    CANCELLED = "it was cancelled at the server"
    SEVERED = "the server did not answer"


class CutOff(Exception):
    """A transaction took too long and was cut; whether it was committed is not known."""

    def __init__(self, cut: Cut) -> None:
        super().__init__(f"it took too long, and {cut.value}")
        self.cut = cut


class Watch:
    """The connection of one transaction that is being watched; the clock runs from when it was last seen.

    Args:
        seconds: how long the connection may take for what it does.
    """

    def __init__(self, seconds: float) -> None:
        self.cut: Cut | None = None
        self._seconds = seconds
        self._lock = threading.Lock()
        self._pgconn: Any = None
        self._descriptor: int | None = None
        self._deadline = 0.0

    def see(self, connection: Any) -> None:
        """From now on it is about this connection, of the driver or of SQLAlchemy's adapter of it."""
        pgconn = getattr(connection, "driver_connection", connection).pgconn
        with self._lock:
            if pgconn is not self._pgconn:
                self._forget()
                # A connection that is broken already makes itself known at its first statement.
                with contextlib.suppress(Exception):
                    self._descriptor = _duplicate(pgconn)
                    self._pgconn = pgconn
                self.cut = None
            self._deadline = time.monotonic() + self._seconds

    def end(self) -> Cut | None:
        """Watch no longer. Returns how the connection was cut; it must then not be used again."""
        with self._lock:
            self._forget()
            return self.cut

    def look(self, now: float) -> None:
        """Cut the connection if it is time."""
        with self._lock:
            if self._descriptor is None or now < self._deadline:
                return
            if self.cut is None:
                self.cut = Cut.CANCELLED
                arguments = (self._pgconn, CANCEL_WITHIN)
                threading.Thread(target=cancel, args=arguments, name="hookledger-cancel", daemon=True).start()
            elif self.cut is Cut.CANCELLED and now >= self._deadline + GRACE:
                self.cut = Cut.SEVERED
                with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._descriptor)) as copy:
                    copy.shutdown(socket.SHUT_RDWR)

    def _forget(self) -> None:
        self._descriptor = self._pgconn = None


_duplicates: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def _duplicate(pgconn: Any) -> int:
    """A file descriptor of our own for the socket of a connection, which is closed with it.

    The number of a closed socket may belong to another file by the time that it is shut. Made once a connection: each
    call to the system lets other threads have the interpreter, and a commit wait for it.
    """
    descriptor = _duplicates.get(pgconn)
    if descriptor is None:
        descriptor = _duplicates[pgconn] = os.dup(pgconn.socket)
        weakref.finalize(pgconn, os.close, descriptor).atexit = False
    return descriptor


_current: ContextVar[Watch | None] = ContextVar("hookledger_watch", default=None)
_attended: weakref.WeakSet[Any] = weakref.WeakSet()


class Watchdog:
    """Watches the transactions of one receiver.

    Args:
        engine: synchronous, or the synchronous side of an asynchronous one; what it does while it connects and
            probes a connection for us is watched too.
    """

    def __init__(self, engine: Engine) -> None:
        self._lock = threading.Lock()
        self._watches: set[Watch] = set()
        self._busy = threading.Event()
        self._started = False
        _attend(engine)

    @contextlib.contextmanager
    def watching(self, seconds: float) -> Iterator[Watch]:
        """A watch over what this thread, or this task, does with connections of the engine within the block.

        Args:
            seconds: how long a transaction may take.
        """
        watch = Watch(seconds)
        with self._lock:
            if not self._started:
                threading.Thread(target=self._run, name="hookledger-watchdog", daemon=True).start()
                self._started = True
            self._watches.add(watch)
        if not self._busy.is_set():
            self._busy.set()
        before = _current.set(watch)
        try:
            yield watch
        finally:
            _current.reset(before)
            watch.end()
            with self._lock:
                self._watches.discard(watch)

    def _run(self) -> None:
        while True:
            busy = self._busy.wait(LINGER)
            with self._lock:
                if not busy and not self._watches:
                    self._started = False
                    return
            time.sleep(LOOK_EVERY)
            with self._lock:
                watches = tuple(self._watches)
                if not watches:
                    self._busy.clear()
            now = time.monotonic()
            for watch in watches:
                # Out of threads or files: the next look comes soon.
                with contextlib.suppress(RuntimeError, OSError):
                    watch.look(now)


def _attend(engine: Engine) -> None:
    """See the engine's connections from their first moment, where it is us who ask for them."""
    dialect = engine.dialect
    if dialect in _attended:
        return
    _attended.add(dialect)
    theirs: bool | None = None

    def bound_connecting(_: Any, record: Any, arguments: Any, parameters: dict[str, Any]) -> None:
        # The parameters are the same mapping at every connection: those of the application get theirs back.
        nonlocal theirs
        if theirs is None:
            theirs = "connect_timeout" in parameters or "PGCONNECT_TIMEOUT" in os.environ
        if theirs:
            return
        if _current.get() is None:
            parameters.pop("connect_timeout", None)
        else:
            parameters["connect_timeout"] = CONNECT_SECONDS

    def see(connection: Any, record: Any) -> None:
        watch = _current.get()
        if watch is not None:
            watch.see(connection)

    event.listen(engine, "do_connect", bound_connecting)
    event.listen(engine, "connect", see, insert=True)

    ping = dialect.do_ping

    def no_ping_for_us(connection: Any) -> bool:
        # A commit that meets a dead connection is tried on a new one, so the trip to the server is spared.
        return True if _current.get() is not None else ping(connection)

    # pool_pre_ping talks to the server before anybody is handed the connection, and there is no event for it.
    vars(dialect)["do_ping"] = no_ping_for_us
