"""One batch within its transaction: hold, look up, lock, decide, run, write (D6 to D10).

Nothing here begins or commits; the cycle does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hookledger.errors import UnreadableBody
from hookledger.handlers import NO_HANDLER, Handler, Kind
from hookledger.inbox import Inbox
from hookledger.ledger.failure import is_conflict, is_distress
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import AddedNumber, EffectKey, GivenBack, NewEffect, NewState, Parked, StateKey, Watermark
from hookledger.worker.call import Caller
from hookledger.worker.decide import contest, higher, refuse_far_future
from hookledger.worker.failing import verdict, write_failed
from hookledger.worker.hold import hold
from hookledger.worker.interrupt import is_interrupt
from hookledger.worker.look import FullLooks
from hookledger.worker.outcome import BatchReport, Claimed, Failure, Outcome, Snapshot, told
from hookledger.worker.pauses import read_pauses
from hookledger.worker.read import numbers_to_add, read_snapshot
from hookledger.worker.state import snapshot_state
from hookledger.worker.transaction import HandlerConnection, Spoiled, error_of_handler, lost_error

SNAPSHOT, ACCUMULATE = Kind.SNAPSHOT, Kind.ACCUMULATE
APPLIED, STALE, SUPERSEDED, IGNORED = [
    outcome.value for outcome in (Outcome.APPLIED, Outcome.STALE, Outcome.SUPERSEDED, Outcome.IGNORED)
]
# As they stand in the ledger. Looked up once: a member of an enum costs a call each time.


PAYLOAD_GONE = (
    "retention has dropped the payload of this delivery, or it was erased: no handler can run, and its outcomes stay"
)


class Conflict(Exception):
    """A deadlock or serialization failure: the whole batch is run again, and nobody is charged."""


@dataclass(frozen=True)
class Tools:
    """What a batch is worked on with."""

    inbox: Inbox
    repository: Repository
    caller: Caller
    time_budget: float
    stopping: Callable[[], bool]
    random: Random
    full_looks: FullLooks = field(default_factory=FullLooks)
    """Shared by the slots of a worker."""
    observed: bool = True
    """Whether anybody is told of what succeeds; what fails is always told, for the log."""


@dataclass
class Batch:
    """The work on one batch, and what is to be written for it.

    Args:
        tools: for it.
        connection: in a transaction.
        claimed: what our claim took.
        alone: a single delivery that broke a transaction before: what may break at the commit is looked at after
            each handler.
        refused: handlers that are not run, by name, and what they are charged with instead.
    """

    tools: Tools
    connection: HandlerConnection
    claimed: Sequence[Claimed]
    alone: bool = False
    refused: Mapping[str, BaseException] = field(default_factory=dict)
    report: BatchReport = field(default_factory=BatchReport)
    effects: list[NewEffect] = field(default_factory=list)
    states: list[NewState] = field(default_factory=list)
    numbers: list[AddedNumber] = field(default_factory=list)
    failures: dict[int, list[Failure]] = field(default_factory=dict)
    untouched: set[int] = field(default_factory=set)
    running: Claimed | None = None
    """Whose handler runs, or ran when the connection was lost."""
    _begun: set[int] = field(default_factory=set)
    _snapshots: dict[tuple[int, str], Snapshot] = field(default_factory=dict)
    _watermarks: dict[StateKey, Watermark] = field(default_factory=dict)
    _places: dict[StateKey, str] = field(default_factory=dict)
    _decided: set[StateKey] = field(default_factory=set)
    _deadline: float = 0.0

    def work(self) -> BatchReport:
        """Do all of it within the open transaction.

        Raises:
            Conflict: to be run again.
            Spoiled: a handler ended the transaction.
            DBAPIError: a statement of ours failed, or the connection is gone.
        """
        self.connection.begin_batch()
        held = self._hold()
        done = self._look_up_and_lock(held)
        contests: dict[StateKey, list[Snapshot]] = {}
        for snapshot in self._snapshots.values():
            contests.setdefault(snapshot.state_key, []).append(snapshot)
        for claimed in held:
            if not claimed.has_payload:
                continue
            for handler in claimed.handlers:
                if handler.name in self.refused or (done and _effect_key(claimed, handler.name) in done):
                    continue
                if handler.kind is ACCUMULATE:
                    self._accumulate(claimed, handler)
                    continue
                of_handler = self._snapshots.get((claimed.delivery.id, handler.name))
                if of_handler is not None and of_handler.state_key not in self._decided:
                    self._decide(contests[of_handler.state_key])
        self._write(held, done)
        return self.report

    def _hold(self) -> list[Claimed]:
        ours = [(claimed.delivery.id, claimed.attempts) for claimed in self.claimed]
        held = hold(self.connection, self.tools.repository, ours)
        self.report.lost = len(ours) - len(held)
        still_ours = [claimed for claimed in self.claimed if claimed.delivery.id in held]
        still_ours.sort(key=_in_turn)
        return still_ours

    def _look_up_and_lock(self, held: list[Claimed]) -> set[EffectKey]:
        for claimed in held:
            for handler in claimed.handlers:
                self._prepare(claimed, handler)
        if not held:
            return set()
        # Should the mark be wrong, the key of the effects refuses the batch, and alone they are all looked up.
        # The key knows nothing of former names: with such, a delivery that was pruned and came again is looked up too.
        revisited = [
            claimed
            for claimed in held
            if claimed.revisited or self.alone or not claimed.has_payload or _was_renamed(claimed.handlers)
        ]
        events = [(claimed.delivery.source, claimed.delivery.event_id) for claimed in revisited]
        done = self.tools.repository.look_up(self.connection, events) if events else set()
        for claimed in revisited:
            for handler in claimed.handlers:
                if any(_effect_key(claimed, alias) in done for alias in handler.aliases):
                    done.add(_effect_key(claimed, handler.name))
                if _effect_key(claimed, handler.name) in done:
                    self._snapshots.pop((claimed.delivery.id, handler.name), None)
                    self._forget_failure(claimed.delivery.id, handler)
        self._lock_states()
        return done

    def _lock_states(self) -> None:
        """Lock the states in the order of their key; those that do not exist are made, in that order, after the others
        are locked: where that meets another batch that makes the same, PostgreSQL finds it and both run again."""
        wanted = {snapshot.state_key: snapshot.handler for snapshot in self._snapshots.values()}
        if not wanted:
            return
        keys = sorted(wanted)
        former = {(alias, *key[1:]): key for key, handler in wanted.items() for alias in handler.aliases}
        everything = sorted({*keys, *former}) if former else keys
        self._watermarks, self._places = self.tools.repository.lock_states(self.connection, everything)
        missing = [key for key in keys if key not in self._watermarks]
        if missing:
            self.tools.repository.insert_states(self.connection, missing)
            made = self.tools.repository.lock_states(self.connection, missing)
            self._watermarks.update(made.watermarks)
            self._places.update(made.places)
            if any(key not in self._watermarks for key in missing):
                # Somebody removed a state between our insert and our lock.
                raise Conflict
        for alias, key in former.items():
            if alias in self._watermarks:
                self._watermarks[key] = higher(self._watermarks[key], self._watermarks[alias])

    def _prepare(self, claimed: Claimed, handler: Handler) -> None:
        if not claimed.has_payload:
            self._fail(claimed, handler, UnreadableBody(PAYLOAD_GONE))
        elif handler.name in self.refused:
            self._fail(claimed, handler, self.refused[handler.name])
        elif handler.kind is SNAPSHOT:
            try:
                snapshot = read_snapshot(claimed, handler)
                refuse_far_future(snapshot, self.tools.inbox.future_tolerance)
            except BaseException as error:
                if is_interrupt(error, handler):
                    raise
                self._fail(claimed, handler, error)
            else:
                self._snapshots[claimed.delivery.id, handler.name] = snapshot

    def _decide(self, snapshots: list[Snapshot]) -> None:
        """Run the newest snapshot of a resource; only one that was applied makes the others superseded."""
        key = snapshots[0].state_key
        self._decided.add(key)
        decided = contest(snapshots, self._watermarks[key])
        for snapshot, error in decided.uncomparable:
            self._fail(snapshot.claimed, snapshot.handler, error)
        for snapshot in decided.stale:
            self._settle(snapshot.claimed, snapshot.handler, STALE, snapshot)
        applied = False
        for snapshot in decided.candidates:
            if applied:
                self._settle(snapshot.claimed, snapshot.handler, SUPERSEDED, snapshot)
            elif self._may_run(snapshot.claimed):
                applied = self._apply(snapshot)

    def _apply(self, snapshot: Snapshot) -> bool:
        claimed, handler = snapshot.claimed, snapshot.handler
        succeeded, state = self._run(claimed, handler, snapshot_state)
        if succeeded:
            self.states.append(
                NewState(
                    *snapshot.state_key,
                    snapshot.version_text,
                    claimed.delivery.id,
                    snapshot.deleted,
                    snapshot.deleted or state is not None,
                    None if snapshot.deleted else state,
                    self._places[snapshot.state_key],
                )
            )
            self._settle(claimed, handler, APPLIED, snapshot)
        return succeeded

    def _accumulate(self, claimed: Claimed, handler: Handler) -> None:
        if not self._may_run(claimed):
            return
        succeeded, numbers = self._run(claimed, handler, lambda returned: numbers_to_add(claimed, handler, returned))
        if succeeded:
            self.numbers += numbers
            self._settle(claimed, handler, APPLIED, None)

    def _may_run(self, claimed: Claimed) -> bool:
        """Whether there is time. A delivery that was begun gets all its handlers, else one that always fails could
        use up the time before the others get a turn."""
        if self.tools.stopping():
            self.untouched.add(claimed.delivery.id)
            return False
        if claimed.delivery.id not in self._begun:
            now = time.monotonic()
            if not self._begun:
                self._deadline = now + self.tools.time_budget
            elif now >= self._deadline:
                self.untouched.add(claimed.delivery.id)
                return False
            self._begun.add(claimed.delivery.id)
        return True

    def _run(self, claimed: Claimed, handler: Handler, read: Callable[[Any], Any]) -> tuple[bool, Any]:
        """Call the handler in its savepoint; whether it succeeded, and what `read` made of its return value."""
        connection = self.connection
        connection.enter()
        self.running = claimed
        try:
            result = read(self.tools.caller.call(handler, claimed.delivery, connection))
            connection.leave(check_deferred=self.alone)
        except BaseException as error:
            connection.take_over()
            self._take_back(claimed, handler, error)
            self.running = None
            return False, None
        else:
            self.running = None
            return True, result
        finally:
            connection.take_over()

    def _take_back(self, claimed: Claimed, handler: Handler, error: BaseException) -> None:
        """Take back what a handler wrote and note its failure, unless the failure is not the handler's own.

        What is asked is how our connection is, and not what kind of error it is: the handler may have got that
        from another database.
        """
        connection, first = self.connection, self.connection.first_error
        if is_interrupt(error, handler):
            raise error
        if connection.lost:
            if first is not None and not isinstance(first, Exception):
                # SQLAlchemy drops a connection on which a statement was cancelled, as by a timeout of the handler.
                raise self._spoiled(Spoiled(error), claimed, handler) from error
            raise lost_error(first or error) from error
        if (first is not None and is_conflict(first)) or (is_conflict(error) and connection.in_error):
            raise Conflict from error
        if connection.outage is not None:
            self.running = None
            raise connection.outage from error
        for met in (first, error):
            if isinstance(met, Exception) and is_distress(met) and (met is first or connection.in_error):
                raise error_of_handler(met) from error
        caught = first if first is not None and first is not error and connection.in_error else None
        try:
            if isinstance(error, Spoiled):
                raise error
            connection.undo()
        except Spoiled as spoiled:
            raise self._spoiled(spoiled, claimed, handler) from error
        self._fail(claimed, handler, error, caught)

    def _spoiled(self, spoiled: Spoiled, claimed: Claimed, handler: Handler) -> Spoiled:
        spoiled.handler, spoiled.delivery_id = handler, claimed.delivery.id
        self.running = None
        return spoiled

    def _settle(self, claimed: Claimed, handler: Handler, outcome: str, snapshot: Snapshot | None) -> None:
        delivery = claimed.delivery
        version = None if snapshot is None else snapshot.version_text
        self.effects.append(NewEffect(delivery.source, delivery.event_id, handler.name, delivery.id, outcome, version))
        if self.tools.observed:
            resource = delivery.resource if snapshot is None else snapshot.resource
            self.report.settled.append(told(delivery, handler.name, outcome, resource=resource))

    def _fail(
        self, claimed: Claimed, handler: Handler, error: BaseException, first: BaseException | None = None
    ) -> None:
        self.failures.setdefault(claimed.delivery.id, []).append(Failure(handler, error, first))

    def _forget_failure(self, delivery_id: int, handler: Handler) -> None:
        left = [failure for failure in self.failures.pop(delivery_id, []) if failure.handler is not handler]
        if left:
            self.failures[delivery_id] = left

    def _write(self, held: list[Claimed], done: set[EffectKey]) -> None:
        self.connection.release()
        settled: list[int] = []
        given_back: list[GivenBack] = []
        parked: list[Claimed] = []
        failed: list[Claimed] = []
        for claimed in held:
            delivery_id = claimed.delivery.id
            if self.failures and delivery_id in self.failures and not self._dies_too_early(claimed):
                failed.append(claimed)
            elif delivery_id in self.untouched:
                given_back.append(GivenBack(delivery_id, claimed.attempts, 1, claimed.last_error))
            elif claimed.paused:
                parked.append(claimed)
            else:
                if not claimed.handlers and _effect_key(claimed, NO_HANDLER) not in done:
                    self._ignore(claimed)
                settled.append(delivery_id)
        self.report.given_back = len(given_back)
        connection, repository = self.connection, self.tools.repository
        if self.states:
            repository.save_states(connection, self.states)
        if self.numbers:
            repository.add_states(connection, self.numbers)
        if self.effects or settled:
            repository.settle(connection, self.effects, settled)
        if parked:
            self._park(parked)
        if given_back:
            repository.give_back(connection, given_back)
        if failed:
            inbox, random = self.tools.inbox, self.tools.random
            self.report.settled += write_failed(repository, connection, inbox, random, failed, self.failures)

    def _park(self, claimed: Sequence[Claimed]) -> None:
        """Leave deliveries to their paused handlers; those of a handler that was resumed meanwhile are due at once."""
        pauses = read_pauses(self.tools.repository.hold_pauses(self.connection))
        parked: list[Parked] = []
        for one in claimed:
            still = one.paused & pauses.handlers.keys() or one.delivery.source in pauses.sources
            seconds = pauses.seconds(one.delivery.source, one.paused, self.tools.random.random()) if still else 0.0
            parked.append(Parked(one.delivery.id, one.attempts, 1, one.last_error, seconds))
        self.tools.repository.park(self.connection, parked)

    def _dies_too_early(self, claimed: Claimed) -> bool:
        """Whether a delivery would be given up before its other handlers had their turn."""
        if claimed.delivery.id not in self.untouched:
            return False
        return verdict(self.failures[claimed.delivery.id], claimed.attempts, self.tools.inbox) is not None

    def _ignore(self, claimed: Claimed) -> None:
        delivery = claimed.delivery
        self.effects.append(NewEffect(delivery.source, delivery.event_id, NO_HANDLER, delivery.id, IGNORED, None))
        if self.tools.observed:
            self.report.settled.append(told(delivery, NO_HANDLER, IGNORED))


def _was_renamed(handlers: Sequence[Handler]) -> bool:
    return any(handler.aliases for handler in handlers)


def _effect_key(claimed: Claimed, handler: str) -> EffectKey:
    return handler, claimed.delivery.source, claimed.delivery.event_id


def _in_turn(claimed: Claimed) -> tuple[str, int]:
    """By resource, then by arrival: so that handlers that write a row of the resource lock those rows in one order in
    all batches, and do not wait for each other in circles."""
    return claimed.delivery.resource or "", claimed.delivery.id
