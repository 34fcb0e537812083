"""The worker: an asyncio runner with slots that claim and work until it is told to stop (D9, D10, D12)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from random import Random

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from hookledger.errors import SetupError
from hookledger.inbox import Inbox
from hookledger.ledger.ready import open_ready
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import GivenBack
from hookledger.worker.batch import Tools
from hookledger.worker.call import Caller
from hookledger.worker.connector import Connector
from hookledger.worker.cycle import Cycle
from hookledger.worker.heal import Heal
from hookledger.worker.hold import hold
from hookledger.worker.listen import Listener
from hookledger.worker.look import FullLooks
from hookledger.worker.outcome import Settled
from hookledger.worker.revive import Reviver
from hookledger.worker.settings import WorkerSettings
from hookledger.worker.slot import Slot
from hookledger.worker.turns import Turns
from hookledger.worker.upkeep import Upkeep

logger = logging.getLogger(__name__)

SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Bounds, in seconds, of the pause between two tries while the database is away."""
REFUND_WITHIN = 3.0
REFUND_SHARE = 0.3
"""Seconds, and share at the most, of the grace time that are kept for giving back what a handler that does not end
has claimed."""

Observe = Callable[[Settled], None]


class Worker:
    """Works on pending deliveries. Any number of workers, in any number of processes, need no coordination.

    Args:
        inbox: the handlers.
        engine: of the database with the ledger. An asynchronous one is needed as soon as one handler is
            asynchronous; its pool must have a connection for each slot, and one more.
        settings: slots, batch and times.
        observe: told of each outcome after its commit, from the thread or loop of the slot; must not block.

    Raises:
        SetupError: for an inbox without handlers, an engine of another driver, or asynchronous handlers with
            a synchronous engine.
    """

    def __init__(
        self,
        inbox: Inbox,
        engine: Engine | AsyncEngine,
        settings: WorkerSettings | None = None,
        *,
        observe: Observe | None = None,
    ) -> None:
        if engine.dialect.name != "postgresql" or engine.dialect.driver != "psycopg":
            raise SetupError(
                f"the engine uses {engine.dialect.name}+{engine.dialect.driver}: "
                "make it with a URL that begins with postgresql+psycopg://"
            )
        if not inbox.handlers:
            raise SetupError("the inbox has no handlers: decorate a function with @inbox.snapshot or @inbox.accumulate")
        if isinstance(engine, Engine):
            for handler in inbox.handlers.values():
                if handler.is_async:
                    raise SetupError(
                        f"the handler {handler.name!r} is asynchronous and the engine is not: "
                        "make it with create_async_engine"
                    )
        self.inbox = inbox
        self.engine = engine
        self.settings = settings or WorkerSettings()
        self._observe = observe
        self._repository = Repository.of(inbox.schema)
        self._process = os.getpid()
        self._heal = Heal(inbox, self._repository)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        self._now = False
        self._until_idle = False
        self._full_looks = FullLooks()
        self.stuck = False
        """Whether a blocking handler was still running when `run` returned."""

    def stop(self, *, now: bool = False) -> None:
        """Claim no more, let running handlers end within the grace time, and give the rest back.

        Safe from any thread and from a signal handler.

        Args:
            now: do not wait for running handlers.
        """
        self._stopping = True
        self._now = self._now or now
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken)

    async def run(self) -> None:
        """Work until `stop`.

        Raises:
            SetupError: at the start, if the database cannot be worked with as it is.
        """
        await self._work(until_idle=False)

    async def run_until_idle(self) -> None:
        """Work until nothing is due; deliveries that wait for their next attempt stay pending."""
        await self._work(until_idle=True)

    async def _work(self, *, until_idle: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._stop_seen = asyncio.Event()
        self._seat = asyncio.Lock()
        self._turns = Turns()
        self._poll = self.settings.shortest_poll
        self._reviver = Reviver(self.inbox, self._repository, self.settings.revive_ignored)
        self._until_idle = until_idle
        self._full_looks = FullLooks(rare=not until_idle)
        await self._check()
        upkeep = Upkeep(self.inbox, self.engine, self.settings)
        await upkeep.check()
        slots = [Slot(number, self.engine, self._make_cycle) for number in range(self.settings.slots)]
        listening = asyncio.create_task(self._listen(slots[0])) if self.settings.listen and not until_idle else None
        keeping = asyncio.create_task(upkeep.run()) if upkeep.is_wanted and not until_idle else None
        working = {asyncio.create_task(self._slot(slot)): slot for slot in slots}
        try:
            await self._until_stopped(working)
        finally:
            self._stopping = True
            for beside in (listening, keeping):
                if beside is not None:
                    beside.cancel()
                    await asyncio.wait([beside])
            await self._abandon(working)
            self._stopping = self._now = False
            self._loop = None

    async def _check(self) -> None:
        if self._process != os.getpid():
            # What the engine's pool holds since before a fork belongs to the parent.
            getattr(self.engine, "sync_engine", self.engine).dispose(close=False)
            self._process = os.getpid()
        if isinstance(self.engine, AsyncEngine):
            await greenlet_spawn(open_ready, self.engine.sync_engine, self.inbox.schema)
        else:
            await asyncio.get_running_loop().run_in_executor(None, open_ready, self.engine, self.inbox.schema)

    async def _until_stopped(self, working: dict[asyncio.Task[None], Slot]) -> None:
        stopped = asyncio.create_task(self._stop_seen.wait())
        if self._stopping:
            self._stop_seen.set()
        try:
            pending: set[asyncio.Task[object]] = {*working, stopped}
            while not stopped.done() and len(pending) > 1:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done - {stopped}:
                    task.result()
        finally:
            stopped.cancel()
        if self._stopping:
            await self._grace(working)

    async def _grace(self, working: dict[asyncio.Task[None], Slot]) -> None:
        """Wait for the slots within the grace time, or until told not to."""
        assert self._loop is not None
        grace = self.settings.grace
        end = self._loop.time() + grace - min(REFUND_WITHIN, grace * REFUND_SHARE)
        while not self._now and any(not task.done() for task in working):
            self._stop_seen.clear()
            seen = asyncio.create_task(self._stop_seen.wait())
            left = end - self._loop.time()
            if left <= 0:
                seen.cancel()
                return
            waiting = [task for task in working if not task.done()]
            await asyncio.wait([*waiting, seen], timeout=left, return_when=asyncio.FIRST_COMPLETED)
            seen.cancel()

    async def _abandon(self, working: dict[asyncio.Task[None], Slot]) -> None:
        """Release what handlers that do not end have claimed, with their attempts refunded."""
        running = {task: slot for task, slot in working.items() if not task.done()}
        if running:
            await self._cut(running)
        for task, slot in working.items():
            if task in running:
                slot.let_go()
            else:
                await slot.disconnect()

    async def _cut(self, running: dict[asyncio.Task[None], Slot]) -> None:
        patience = REFUND_WITHIN / 3
        slots = list(running.values())
        given_back = [row for slot in slots for row in list(slot.cycle.taken.values())]
        loop = asyncio.get_running_loop()
        await asyncio.wait([loop.run_in_executor(None, slot.sever, patience) for slot in slots], timeout=patience)
        for task in running:
            task.cancel()
        _, left = await asyncio.wait(running, timeout=patience / 2)
        for task in left:
            # Those wait for a thread to drop their connection, behind a handler that does not end.
            task.cancel()
        self.stuck = any(slot.busy for slot in slots)
        if given_back:
            logger.info("giving back %d deliveries whose handlers did not end in time", len(given_back))
            with contextlib.suppress(SQLAlchemyError, psycopg.Error, TimeoutError, OSError):
                async with asyncio.timeout(patience * 1.5):
                    await self._refund(slots[0].connector.engine, given_back)

    async def _refund(self, engine: Engine, given_back: Sequence[GivenBack]) -> None:
        def refund() -> None:
            with engine.begin() as connection:
                held = hold(connection, self._repository, [(row.delivery_id, row.attempts) for row in given_back])
                self._repository.give_back(connection, [row for row in given_back if row.delivery_id in held])

        if isinstance(self.engine, AsyncEngine):
            await greenlet_spawn(refund)
        else:
            await asyncio.get_running_loop().run_in_executor(None, refund)

    async def _slot(self, slot: Slot) -> None:
        try:
            await self._work_in(slot)
        finally:
            self._turns.pass_on(slot)

    async def _work_in(self, slot: Slot) -> None:
        pause = SHORTEST_PAUSE
        while True:
            await self._turns.take(slot)
            if self._stopping:
                return
            try:
                claimed = await slot.run()
            except (SQLAlchemyError, psycopg.Error, OSError) as error:
                cause = getattr(error, "orig", None) or error
                logger.warning("slot %d cannot work, trying again: %s", slot.number, str(cause).strip())
                self._turns.pass_on(slot)
                await self._pause(pause * (0.5 + _chance.random()))
                pause = min(LONGEST_PAUSE, pause * 2)
                continue
            pause = SHORTEST_PAUSE
            if claimed or slot.cycle.revived:
                self._turns.keep(slot)
                self._poll = self.settings.shortest_poll
                if slot.cycle.claimed_all:
                    # There may be more: whoever sits idle may look.
                    self._wake.set()
            elif self._until_idle:
                return
            else:
                self._turns.pass_on(slot)
                await self._idle()

    async def _idle(self) -> None:
        """Wait for a hint or for the next look; one slot at a time has the seat that waits."""
        async with self._seat:
            if self._stopping:
                return
            try:
                async with asyncio.timeout(self._poll):
                    await self._wake.wait()
                self._poll = self.settings.shortest_poll
            except TimeoutError:
                self._poll = min(self.settings.longest_poll, self._poll * 2)
            self._wake.clear()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop_seen.wait()

    async def _listen(self, slot: Slot) -> None:
        await slot.connected.wait()
        await Listener(self.inbox.schema, self._woken).run(lambda: slot.connector.parameters)

    def _woken(self) -> None:
        self._wake.set()
        if self._stopping:
            self._stop_seen.set()
            self._turns.end()

    def _make_cycle(self, caller: Caller, connector: Connector) -> Cycle:
        tools = Tools(
            inbox=self.inbox,
            repository=self._repository,
            caller=caller,
            time_budget=self.settings.time_budget,
            stopping=lambda: self._stopping,
            random=Random(),  # noqa: S311
            full_looks=self._full_looks,
            observed=self._observe is not None,
        )
        return Cycle(tools, connector, self.settings.batch, self._told, self._heal, self._reviver)

    def _told(self, settled: Sequence[Settled]) -> None:
        if self._observe is not None:
            for one in settled:
                try:
                    self._observe(one)
                except Exception:
                    logger.exception("the observer of the worker failed; the delivery is not affected")


_chance = Random()  # noqa: S311
