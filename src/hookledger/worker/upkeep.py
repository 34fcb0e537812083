"""What a worker does beside its work: it makes partitions ahead and, if it is told to, prunes.

Any number of workers may do so: what one does, the others find done, and no two prune at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TypeVar

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import await_only, greenlet_spawn

from hookledger.errors import SetupError
from hookledger.inbox import Inbox
from hookledger.ledger.schema import tables
from hookledger.operate.retention.brief import Busy, Patience, Stopped
from hookledger.operate.retention.horizons import retry_times, sources_in
from hookledger.operate.retention.partitions import make_partitions
from hookledger.operate.retention.prune import Pruned, prune, require_owner
from hookledger.worker.settings import WorkerSettings
from hookledger.worker.threads import DaemonThread

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

PATIENCE = Patience()
SPREAD = 0.2
"""Share of the time between two rounds by which they vary, so that workers that were started together part."""
LEAVING = 2.0
"""Seconds that a step gets to end when the worker is stopped; each takes less, unless the database hangs."""


class Upkeep:
    """The upkeep of one worker.

    Args:
        inbox: of the worker.
        engine: of the worker; one connection is taken during a round.
        settings: of the worker.
    """

    def __init__(self, inbox: Inbox, engine: Engine | AsyncEngine, settings: WorkerSettings) -> None:
        self._inbox = inbox
        self._engine = engine
        self._settings = settings
        self._stopping = False
        self._may_make = True
        self._thread: DaemonThread | None = None
        self._random = Random()  # noqa: S311

    @property
    def is_wanted(self) -> bool:
        """Whether there is anything to do."""
        return self._settings.make_partitions or self._settings.retention is not None

    async def check(self) -> None:
        """See at the start that the worker can do what it is told to.

        Raises:
            SetupError: if it may not prune, or the horizons are too short for the senders.
        """
        if self._settings.retention is not None:
            try:
                await self._call(self._check)
            except SetupError:
                self._end_thread()
                raise

    async def run(self) -> None:
        """Do a round now, and one from time to time, until cancelled."""
        try:
            while True:
                await self._call(self._round)
                await asyncio.sleep(self._settings.upkeep_every * (1 + SPREAD * (self._random.random() - 0.5)))
        finally:
            self._stopping = True
            self._end_thread()

    def _end_thread(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()

    def _check(self, engine: Engine, patience: Patience) -> None:
        assert self._settings.retention is not None
        require_owner(engine, self._inbox.schema, patience)
        with patience.transaction(engine) as connection:
            names = sources_in(connection, tables(self._inbox.schema))
        self._settings.retention.require(retry_times(names, self._inbox))

    def _round(self, engine: Engine, patience: Patience) -> None:
        """What cannot be done now is done in the next round."""
        try:
            if self._settings.make_partitions and self._may_make:
                self._make(engine, patience)
            if self._settings.retention is not None:
                _tell(prune(engine, self._inbox.schema, self._settings.retention, patience=patience))
        except Stopped:
            return
        except Busy as error:
            logger.info("%s", error)
        except (SQLAlchemyError, psycopg.Error, OSError) as error:
            cause = getattr(error, "orig", None) or error
            logger.warning("the upkeep of the ledger is put off: %s", str(cause).strip().partition("\n")[0])
        except Exception:
            logger.exception("the upkeep of the ledger failed; deliveries are not affected")

    def _make(self, engine: Engine, patience: Patience) -> None:
        try:
            made = make_partitions(engine, self._inbox.schema, patience=patience)
        except SetupError as error:
            # Once: it is the usual case where the owner of the tables is another role.
            self._may_make = False
            logger.info("%s", error)
            return
        for name in made.made:
            logger.info("made the partition %s", name)

    async def _call(self, work: Callable[[Engine, Patience], None]) -> None:
        patience = replace(PATIENCE, stopping=lambda: self._stopping)
        if isinstance(self._engine, AsyncEngine):
            await greenlet_spawn(work, self._engine.sync_engine, replace(patience, sleep=_sleep_in_loop))
            return
        if self._thread is None:
            self._thread = DaemonThread("hookledger-upkeep")
        future = asyncio.get_running_loop().run_in_executor(self._thread, work, self._engine, patience)
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError:
            self._stopping = True
            await asyncio.wait([future], timeout=LEAVING)
            raise


def _sleep_in_loop(seconds: float) -> None:
    await_only(asyncio.sleep(seconds))


def _tell(pruned: Pruned) -> None:
    dropped = [drop.partition.name for drop in pruned.drops if drop.kept is None]
    if dropped or any(pruned.counts.values()):
        counts = ", ".join(f"{count} {what}" for what, count in pruned.counts.items() if count)
        logger.info("pruned: partitions %s; %s", ", ".join(dropped) or "none", counts or "no rows")
    if pruned.put_off is not None:
        logger.info("%s", pruned.put_off)
    for drop in pruned.drops:
        if drop.kept is not None:
            logger.warning("the partition %s is over its time and stays: %s", drop.partition.name, drop.kept)
