"""The run of a replay: batch after batch, never more ahead of the workers than was said, until it ends or is ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from hookledger.ledger.failure import CANCELLED, is_conflict, sqlstate
from hookledger.ledger.schema import tables
from hookledger.operate.replay.pace import Pace
from hookledger.operate.replay.queue import Batch, queue
from hookledger.operate.replay.records import Replay, ReplayState, change, find, read_state
from hookledger.operate.replay.watch import in_flight, left_out, look, outcomes
from hookledger.operate.retention.brief import SILENT
from hookledger.receive.announce import announce

SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Bounds, in seconds, of the pause between two looks at what the workers have done."""
PATIENCE = 5.0
"""Seconds without anything being worked on, after which the watcher is told that no worker seems to run."""
LEAST_TRIED = 20
"""How many must have been tried before a share of failures says anything."""
TRIES = 5
COUNTING = "30s"
"""How long counting the outcomes may take."""
CANARY_ENDED = "canary_ended_well"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Args:
        queued: deliveries that the replay has made pending, in all its runs.
        total: how many the plan said.
        settled: those of this run that every handler has an outcome of.
        failed: those of this run that are dead again, or wait for their next attempt.
        waiting: those that wait for their first attempt.
        canary: whether the canary is being waited for.
        idle: whether nothing has been worked on for a while: no worker may be running.
    """

    queued: int
    total: int
    settled: int = 0
    failed: int = 0
    waiting: int = 0
    canary: bool = False
    idle: bool = False


class _Ended(Exception):
    def __init__(self, state: ReplayState, why: str | None = None) -> None:
        super().__init__(state, why)
        self.state = state
        self.why = why


class Run:
    """Runs a replay that was begun or resumed, in the thread that calls `run`.

    A batch is one transaction. If the process dies, `resume` and another run go on with the next one.

    Args:
        engine: of the ledger's database.
        replay: as `begin` or `resume` gave it.
        schema: where the ledger is.
        progress: told how far it is, from the running thread.
        patience: seconds for which the last deliveries are waited for without anything being worked on; they stay
            pending.
    """

    def __init__(
        self,
        engine: Engine,
        replay: Replay,
        schema: str,
        *,
        progress: Callable[[Progress], None] = lambda progress: None,
        patience: float = PATIENCE,
    ) -> None:
        # The locks of others are seen at every statement, whatever level the engine was made with.
        self._engine = engine.execution_options(isolation_level="READ COMMITTED")
        self._replay = replay
        self._schema = schema
        self._tables = tables(schema)
        self._progress = progress
        self._patience = patience
        self._stopping = threading.Event()
        self._flight: frozenset[int] = frozenset()
        self._queued = replay.queued
        self._settled = self._failed = 0
        self._moved = time.monotonic()
        self._canary = 0 if replay.result.get(CANARY_ENDED) else replay.options.canary
        self._in_canary = bool(self._canary)

    def stop(self, *, now: bool = False) -> None:
        """End after the batch; safe from any thread and from a signal handler.

        Args:
            now: makes no difference, a batch is short.
        """
        self._stopping.set()

    def run(self) -> Replay:
        """Run until it ends; the replay as it is recorded then.

        Raises:
            DBAPIError: when the database is away. The replay can be resumed.
        """
        pace = Pace(self._replay.options.rate, time.monotonic())
        if self._watches:
            with self._engine.connect() as connection:
                self._flight = in_flight(connection, self._tables, self._replay, self._most)
        try:
            while not self._queue_next(pace):
                pass
            self._wait_for_last()
            ended = _Ended(ReplayState.DONE)
        except _Ended as end:
            ended = end
        return self._finish(ended)

    @property
    def _watches(self) -> bool:
        """Whether the workers are watched; else all is queued at once, and the run ends."""
        options = self._replay.options
        bounds = (options.max_failures, options.max_failed)
        return bool(options.most_pending or self._in_canary or any(bound is not None for bound in bounds))

    @property
    def _most(self) -> int:
        return self._replay.options.most_pending or 100_000

    def _queue_next(self, pace: Pace) -> bool:
        """Queue what there is room for, or wait; whether that was the last."""
        self._check_stopped()
        options = self._replay.options
        room = min(options.batch, self._most - len(self._flight)) if options.most_pending else options.batch
        if self._in_canary:
            if not self._canary:
                self._wait_for_canary()
                return False
            room = min(room, self._canary)
        allowed = pace.allowed(time.monotonic(), room) if room > 0 else 0
        if allowed <= 0:
            self._look()
            self._pause(max(pace.pause(), SHORTEST_PAUSE) if room > 0 else self._next_pause())
            return False
        batch = self._one_batch(allowed)
        if batch.state is not ReplayState.RUNNING:
            raise _Ended(batch.state)
        pace.took(len(batch.ids))
        self._queued += len(batch.ids)
        self._canary -= len(batch.ids) if self._in_canary else 0
        if self._watches:
            self._flight |= frozenset(batch.ids)
        if batch.ids:
            self._moved = time.monotonic()
        self._look()
        return batch.is_last

    def _one_batch(self, most: int) -> Batch:
        for turn in range(TRIES):
            try:
                with self._engine.begin() as connection:
                    batch = queue(connection, self._tables, self._replay, most)
            except DBAPIError as error:
                # One that was stopped for a while has lost its connection, and what it had not committed.
                if not (is_conflict(error) or sqlstate(error) == SILENT) or turn == TRIES - 1:
                    raise
            else:
                break
        if batch.ids:
            with self._engine.begin() as connection:
                announce(connection, self._schema)
        return batch

    def _wait_for_canary(self) -> None:
        while self._flight:
            self._check_stopped()
            self._look()
            if self._failed:
                break
            self._pause(self._next_pause())
        if self._failed:
            raise _Ended(
                ReplayState.FAILED,
                f"{self._failed} of the canary of {self._replay.options.canary} failed: the others were left alone",
            )
        self._in_canary = False
        with self._engine.begin() as connection:
            change(connection, self._tables, self._replay.id, ReplayState.RUNNING, {CANARY_ENDED: True})

    def _wait_for_last(self) -> None:
        while self._flight:
            self._check_stopped()
            self._look()
            if time.monotonic() - self._moved > self._patience:
                return
            self._pause(self._next_pause())

    def _check_stopped(self) -> None:
        if self._stopping.is_set():
            raise _Ended(ReplayState.STOPPED, "interrupted")

    def _look(self) -> None:
        """See what the workers have done, and end if too much has failed."""
        if self._flight:
            with self._engine.connect() as connection:
                ends = look(connection, self._tables, self._flight)
                state = read_state(connection, self._tables, self._replay.id)
            if len(ends.waiting) < len(self._flight):
                self._moved = time.monotonic()
            self._flight = ends.waiting
            self._settled += len(ends.settled)
            self._failed += len(ends.failed)
            self._tell()
            if state is not ReplayState.RUNNING:
                raise _Ended(state)
            self._check_failures()
        else:
            self._tell()

    def _check_failures(self) -> None:
        options, tried = self._replay.options, self._settled + self._failed
        if options.max_failed is not None and self._failed > options.max_failed:
            raise _Ended(ReplayState.FAILED, f"{self._failed} failed, more than {options.max_failed}")
        if options.max_failures is not None and tried >= LEAST_TRIED and self._failed > options.max_failures * tried:
            raise _Ended(ReplayState.FAILED, f"{self._failed} of {tried} failed, more than {options.max_failures:.4g}")

    def _tell(self) -> None:
        idle = bool(self._flight) and time.monotonic() - self._moved > PATIENCE
        self._progress(
            Progress(
                queued=self._queued,
                total=self._replay.plan.total,
                settled=self._settled,
                failed=self._failed,
                waiting=len(self._flight),
                canary=self._in_canary,
                idle=idle,
            )
        )

    def _next_pause(self) -> float:
        return min(LONGEST_PAUSE, max(SHORTEST_PAUSE, (time.monotonic() - self._moved) / 4))

    def _pause(self, seconds: float) -> None:
        self._stopping.wait(min(seconds, LONGEST_PAUSE))

    def _finish(self, ended: _Ended) -> Replay:
        result: dict[str, Any] = {} if ended.why is None else {"why": ended.why}
        with self._engine.begin() as connection:
            change(connection, self._tables, self._replay.id, ended.state, result)
        self._tell_outcomes(ended.state)
        return find(self._engine, self._schema, self._replay.id)

    def _tell_outcomes(self, state: ReplayState) -> None:
        """Count what became of all of them, unless that takes too long, and add it to the record."""
        try:
            with self._engine.begin() as connection:
                connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{COUNTING}'")
                found = outcomes(connection, self._tables, self._replay)
                left = left_out(connection, self._tables, self._replay)
                change(connection, self._tables, self._replay.id, state, {"outcomes": found, **left})
        except DBAPIError as error:
            if sqlstate(error) != CANCELLED:
                raise
