"""Deliveries that were ignored before a worker came that has a handler for them, as in a rolling deploy (D11).

A worker that does not know an event type settles its deliveries as `ignored`. One that knows it makes those of the last
day pending again: when it starts, and now and then while it runs, since an older worker beside it may ignore more.
"""

from __future__ import annotations

import logging
import threading

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from hookledger.inbox import Inbox
from hookledger.ledger.failure import is_outage
from hookledger.ledger.repository import Repository

logger = logging.getLogger(__name__)

PAGE = 1000
"""Deliveries that are looked at, and made pending, in one transaction."""
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 3600.0
"""Bounds, in seconds, of the pause between two looks; each is twice as long as the one before."""


class Reviver:
    """Looks for ignored deliveries that a handler of ours takes. The slots of a worker share one: whichever is between
    two batches does the next page, so that claims wait for a page at the most.

    Args:
        inbox: the handlers.
        repository: of the ledger.
        within: how long ago they may have been ignored, in seconds; 0: none is revived.
    """

    def __init__(self, inbox: Inbox, repository: Repository, within: float) -> None:
        self._inbox = inbox
        self._repository = repository
        self._within = within
        self._turn = threading.Lock()
        self._pause = FIRST_PAUSE
        self._next_at = 0.0
        self._before: int | None = None
        self._looking = within > 0

    def step(self, connection: Connection, now: float) -> bool:
        """Do one page of a look, if one is due and nobody else does.

        Args:
            connection: in no transaction.
            now: a clock that only goes forward, in seconds.

        Returns:
            Whether the caller has done one, and there may be another.

        Raises:
            DBAPIError: if the database is away.
        """
        if not self._looking and (not self._within or now < self._next_at):
            return False
        if not self._turn.acquire(blocking=False):
            return False
        try:
            self._looking = self._page(connection)
        except DBAPIError as error:
            if error.connection_invalidated or connection.closed:
                raise
            # A time limit of the role, perhaps: what is due must not wait for what was ignored.
            self._looking = False
            level = logging.INFO if is_outage(error) else logging.WARNING
            logger.log(level, "cannot look for deliveries that were ignored: %s", str(error.orig).partition("\n")[0])
        finally:
            if not self._looking:
                self._before = None
                self._next_at = now + self._pause
                self._pause = min(LONGEST_PAUSE, 2 * self._pause)
            self._turn.release()
        return self._looking

    def _page(self, connection: Connection) -> bool:
        """Look at one page; whether there may be another."""
        repository = self._repository
        with connection.begin():
            rows = repository.find_ignored(connection, PAGE, self._within, before=self._before)
        recent = [row for row in rows if row.recent]
        wanted = [row.id for row in recent if self._inbox.handlers_for(row.source, row.event_type)]
        if wanted:
            with connection.begin():
                revived = repository.revive_ignored(connection, wanted)
            if revived:
                logger.info("%d deliveries that were ignored have a handler now, and are pending", revived)
        if rows:
            self._before = rows[-1].id
        return len(rows) == PAGE and bool(recent)
