"""The connection of commits that follow each other: kept for a moment, for getting one is a good part of what a commit
costs on this side.

It goes back to the engine's pool when nothing has come for a moment, when it was kept for long enough that others may
want it, and at once where the pool has none to spare. In between it has no transaction open.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.pool import NullPool, Pool, QueuePool

KEPT = 0.05
"""Seconds without a commit after which the connection is given back."""
LONGEST = 0.25
"""Seconds after which it is given back in any case."""


class Lane:
    """One commit after the other, over one connection while they follow closely; not for two threads at a time.

    Args:
        engine: gives the connection, in which each statement is a transaction by itself.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: Connection | None = None
        self._taken_at = 0.0
        self._used_at = 0.0

    @property
    def is_warm(self) -> bool:
        """Whether there is a connection already."""
        return self._kept is not None

    @property
    def unused_for(self) -> float:
        """Seconds since the last commit."""
        return time.monotonic() - self._used_at

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """The connection, for one commit; given back if that fails."""
        connection, self._kept = self._kept, None
        if connection is None:
            connection = self._engine.connect()
            self._taken_at = time.monotonic()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._used_at = time.monotonic()
        if connection.invalidated or self._used_at - self._taken_at > LONGEST or not _has_more(self._engine.pool):
            connection.close()
        else:
            self._kept = connection

    def give_back(self) -> None:
        """Give the connection back to the pool, if there is one."""
        connection, self._kept = self._kept, None
        if connection is not None:
            connection.close()


def _has_more(pool: Pool) -> bool:
    """Whether the pool has a connection for somebody else meanwhile, without counting those over its size."""
    if isinstance(pool, QueuePool):
        return pool.size() == 0 or pool.checkedout() < pool.size()
    return isinstance(pool, NullPool)
