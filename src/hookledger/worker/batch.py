"""One batch within its transaction: hold, look up, lock, decide, run, write (D6 to D10).

Nothing here begins or commits; the cycle does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hookledger.errors import HandlerError, Reject, Retry, UncomparableVersion, UnreadableBody
from hookledger.handlers import NO_HANDLER, Handler, Kind
from hookledger.inbox import Inbox
from hookledger.ledger.arrays import version_text
from hookledger.ledger.failure import is_conflict, is_lost
from hookledger.ledger.repository import (
    AddedNumber,
    Buried,
    EffectKey,
    GivenBack,
    NewEffect,
    NewFailure,
    NewState,
    Postponed,
    Repository,
    StateKey,
    Watermark,
)
from hookledger.storable import identifier
from hookledger.version import read_version
from hookledger.worker.call import Caller
from hookledger.worker.decide import contest, refuse_far_future
from hookledger.worker.fingerprint import fingerprint, in_words
from hookledger.worker.outcome import BatchReport, Claimed, DeathReason, Failure, Outcome, Settled, Snapshot
from hookledger.worker.state import added_numbers, snapshot_state
from hookledger.worker.transaction import HandlerConnection, Spoiled

HOLD_PATIENCE = "1s"
"""How long to wait for another worker's claim that looks at our rows; it commits at once unless it hangs."""


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


@dataclass
class Batch:
    """The work on one batch, and what is to be written for it."""

    tools: Tools
    connection: HandlerConnection
    claimed: Sequence[Claimed]
    report: BatchReport = field(default_factory=BatchReport)
    effects: list[NewEffect] = field(default_factory=list)
    states: list[NewState] = field(default_factory=list)
    numbers: list[AddedNumber] = field(default_factory=list)
    failures: dict[int, list[Failure]] = field(default_factory=dict)
    untouched: set[int] = field(default_factory=set)
    _snapshots: dict[tuple[int, str], Snapshot] = field(default_factory=dict)
    _watermarks: dict[StateKey, Watermark] = field(default_factory=dict)
    _decided: set[StateKey] = field(default_factory=set)
    _spent: float = 0.0

    def work(self) -> BatchReport:
        """Do all of it within the open transaction."""
        held = self._hold()
        done = self._look_up_and_lock(held)
        contests: dict[StateKey, list[Snapshot]] = {}
        for snapshot in self._snapshots.values():
            contests.setdefault(_state_key(snapshot), []).append(snapshot)
        for claimed in held:
            if not claimed.has_payload:
                continue
            for handler in claimed.handlers:
                if (handler.name, claimed.delivery.source, claimed.delivery.event_id) in done:
                    continue
                if handler.kind is Kind.ACCUMULATE:
                    self._accumulate(claimed, handler)
                    continue
                of_handler = self._snapshots.get((claimed.delivery.id, handler.name))
                if of_handler is not None and _state_key(of_handler) not in self._decided:
                    self._decide(contests[_state_key(of_handler)])
        self._write(held)
        return self.report

    def _hold(self) -> list[Claimed]:
        connection, repository = self.connection, self.tools.repository
        ours = [(claimed.delivery.id, claimed.attempts) for claimed in self.claimed]
        held = repository.hold(connection, ours)
        if len(held) < len(ours):
            # Somebody's claim looks at the row for a moment, or it really is no longer ours: wait and see.
            rest = [row for row in ours if row[0] not in held]
            before = connection.exec_driver_sql(
                "SELECT current_setting('lock_timeout'), set_config('lock_timeout', %(patience)s, true)",
                {"patience": HOLD_PATIENCE},
            ).scalar_one()
            held |= repository.hold(connection, rest, wait=True)
            connection.exec_driver_sql("SELECT set_config('lock_timeout', %(before)s, true)", {"before": before})
        self.report.lost = len(ours) - len(held)
        return [claimed for claimed in self.claimed if claimed.delivery.id in held]

    def _look_up_and_lock(self, held: list[Claimed]) -> set[EffectKey]:
        for claimed in held:
            for handler in claimed.handlers:
                if not claimed.has_payload:
                    self._fail(claimed, handler, UnreadableBody("retention has dropped the payload of this delivery"))
                elif handler.kind is Kind.SNAPSHOT:
                    try:
                        snapshot = _read_snapshot(claimed, handler)
                        refuse_far_future(snapshot, self.tools.inbox.future_tolerance)
                    except Exception as error:
                        self._fail(claimed, handler, error)
                    else:
                        self._snapshots[claimed.delivery.id, handler.name] = snapshot
        events = [(claimed.delivery.source, claimed.delivery.event_id) for claimed in held if claimed.handlers]
        keys = sorted({_state_key(snapshot) for snapshot in self._snapshots.values()})
        done: set[EffectKey] = set()
        if events:
            done, missing = self.tools.repository.look_up(self.connection, events, keys)
            if missing:
                self.tools.repository.insert_states(self.connection, sorted(missing))
        for claimed in held:
            delivery = claimed.delivery
            for handler in claimed.handlers:
                if (handler.name, delivery.source, delivery.event_id) in done:
                    self._snapshots.pop((delivery.id, handler.name), None)
                    self._forget_failure(delivery.id, handler)
        if keys:
            self._watermarks = self.tools.repository.lock_states(self.connection, keys)
        return done

    def _decide(self, snapshots: list[Snapshot]) -> None:
        """Run the newest snapshot of a resource; only one that was applied makes the others superseded."""
        key = _state_key(snapshots[0])
        self._decided.add(key)
        decided = contest(snapshots, self._watermarks[key])
        for snapshot, error in decided.uncomparable:
            self._fail(snapshot.claimed, snapshot.handler, error)
        for snapshot in decided.stale:
            self._settle(snapshot.claimed, snapshot.handler, Outcome.STALE, snapshot)
        applied = False
        for snapshot in decided.candidates:
            if applied:
                self._settle(snapshot.claimed, snapshot.handler, Outcome.SUPERSEDED, snapshot)
            elif self._may_run(snapshot.claimed):
                applied = self._apply(snapshot)

    def _apply(self, snapshot: Snapshot) -> bool:
        claimed, handler = snapshot.claimed, snapshot.handler
        succeeded, state = self._run(claimed, handler, snapshot_state)
        if succeeded:
            self.states.append(
                NewState(
                    handler.name,
                    claimed.delivery.source,
                    snapshot.resource,
                    version_text(snapshot.version) or "",
                    claimed.delivery.id,
                    snapshot.deleted,
                    snapshot.deleted or state is not None,
                    None if snapshot.deleted else state,
                )
            )
            self._settle(claimed, handler, Outcome.APPLIED, snapshot)
        return succeeded

    def _accumulate(self, claimed: Claimed, handler: Handler) -> None:
        if not self._may_run(claimed):
            return

        def read(returned: Any) -> list[AddedNumber]:
            numbers = added_numbers(returned)
            resource = _resource(claimed, handler) if numbers else None
            if numbers and resource is None:
                raise HandlerError(
                    "the handler returned numbers, but the delivery names no resource to add them to: "
                    "give the handler resource=..."
                )
            delivery = claimed.delivery
            return [
                AddedNumber(handler.name, delivery.source, resource or "", label, value, delivery.id)
                for label, value in numbers.items()
            ]

        succeeded, numbers = self._run(claimed, handler, read)
        if succeeded:
            self.numbers += numbers
            self._settle(claimed, handler, Outcome.APPLIED, None)

    def _may_run(self, claimed: Claimed) -> bool:
        out_of_time = self.report.handlers_run > 0 and self._spent >= self.tools.time_budget
        if out_of_time or self.tools.stopping():
            self.untouched.add(claimed.delivery.id)
            return False
        return True

    def _run(self, claimed: Claimed, handler: Handler, read: Callable[[Any], Any]) -> tuple[bool, Any]:
        """Call the handler in its savepoint; whether it succeeded, and what `read` made of its return value."""
        connection = self.connection
        started = time.monotonic()
        self.report.handlers_run += 1
        connection.enter()
        try:
            try:
                result = read(self.tools.caller.call(handler, claimed.delivery, connection))
                connection.leave()
            except (Spoiled, KeyboardInterrupt):
                raise
            except BaseException as error:
                cause = connection.first_error or error
                if is_lost(cause) or is_lost(error):
                    raise
                if is_conflict(cause) or is_conflict(error):
                    raise Conflict from error
                connection.undo()
                if not isinstance(error, Exception) and self.tools.stopping():
                    raise
                self._fail(claimed, handler, error)
                return False, None
            return True, result
        finally:
            connection.running = False
            self._spent += time.monotonic() - started

    def _settle(self, claimed: Claimed, handler: Handler, outcome: Outcome, snapshot: Snapshot | None) -> None:
        delivery = claimed.delivery
        version = None if snapshot is None else version_text(snapshot.version)
        self.effects.append(
            NewEffect(delivery.source, delivery.event_id, handler.name, delivery.id, outcome.value, version)
        )
        resource = delivery.resource if snapshot is None else snapshot.resource
        self.report.settled.append(told(delivery, handler.name, outcome.value, resource=resource))

    def _fail(self, claimed: Claimed, handler: Handler, error: BaseException) -> None:
        self.failures.setdefault(claimed.delivery.id, []).append(Failure(handler, error))

    def _forget_failure(self, delivery_id: int, handler: Handler) -> None:
        left = [failure for failure in self.failures.pop(delivery_id, []) if failure.handler is not handler]
        if left:
            self.failures[delivery_id] = left

    def _write(self, held: list[Claimed]) -> None:
        settled: list[int] = []
        given_back: list[GivenBack] = []
        failed: list[Claimed] = []
        for claimed in held:
            delivery_id = claimed.delivery.id
            if delivery_id in self.failures:
                failed.append(claimed)
            elif delivery_id in self.untouched:
                given_back.append(GivenBack(delivery_id, claimed.attempts, 1, claimed.last_error))
            else:
                if not claimed.handlers:
                    self._ignore(claimed)
                settled.append(delivery_id)
        self.report.given_back = len(given_back)
        connection, repository = self.connection, self.tools.repository
        if self.states:
            repository.save_states(connection, self.states)
        if self.numbers:
            repository.add_states(connection, self.numbers)
        if self.effects:
            repository.write_effects(connection, self.effects)
        if settled:
            repository.settle(connection, settled)
        if given_back:
            repository.give_back(connection, given_back)
        if failed:
            write_failed(self.tools, connection, failed, self.failures, self.report)

    def _ignore(self, claimed: Claimed) -> None:
        delivery = claimed.delivery
        outcome = Outcome.IGNORED.value
        self.effects.append(NewEffect(delivery.source, delivery.event_id, NO_HANDLER, delivery.id, outcome, None))
        self.report.settled.append(told(delivery, NO_HANDLER, outcome))


def write_failed(
    tools: Tools,
    connection: HandlerConnection,
    failed: Sequence[Claimed],
    failures: dict[int, list[Failure]],
    report: BatchReport,
) -> None:
    """Record failed attempts: each is tried again later, or becomes a dead letter.

    A delivery is given up when a handler rejected it, or when every handler that fails has used up its attempts.
    """
    rows: list[NewFailure] = []
    postponed: list[Postponed] = []
    buried: list[Buried] = []
    for claimed in failed:
        delivery = claimed.delivery
        of_delivery = failures[delivery.id]
        delays: list[float] = []
        verdict: DeathReason | None = None
        for failure in of_delivery:
            policy = tools.inbox.retry_of(failure.handler)
            name, error = failure.handler.name, failure.error
            rows.append(NewFailure(delivery.id, claimed.attempts, name, in_words(error), fingerprint(name, error)))
            if isinstance(error, Reject):
                verdict = DeathReason.REJECTED
            elif isinstance(error, UnreadableBody):
                verdict = verdict or DeathReason.UNREADABLE
            elif not policy.exhausted(claimed.attempts):
                after = error.after if isinstance(error, Retry) else None
                delays.append(policy.delay(claimed.attempts, tools.random.random()) if after is None else after)
        first = of_delivery[0]
        words = in_words(first.error)
        if verdict is None and not delays:
            verdict = DeathReason.FAILED
        if verdict is None:
            postponed.append(Postponed(delivery.id, claimed.attempts, max(0.0, min(delays)), words))
        else:
            mark = fingerprint(first.handler.name, first.error)
            buried.append(Buried(delivery.id, claimed.attempts, verdict.value, words, mark))
        for failure in of_delivery:
            outcome = "failed" if verdict is None else f"dead ({verdict.value})"
            report.settled.append(told(delivery, failure.handler.name, outcome, error=in_words(failure.error)))
    tools.repository.write_failures(connection, rows)
    if postponed:
        tools.repository.postpone(connection, postponed)
    if buried:
        tools.repository.bury(connection, buried)


def told(
    delivery: Any, handler: str, outcome: str, *, resource: str | None = None, error: str | None = None
) -> Settled:
    """What observers and the log are told of a delivery."""
    return Settled(
        delivery.id,
        delivery.source,
        delivery.event_id,
        delivery.event_type,
        resource or delivery.resource,
        handler,
        outcome,
        delivery.attempt,
        error,
    )


def _state_key(snapshot: Snapshot) -> StateKey:
    return snapshot.handler.name, snapshot.claimed.delivery.source, snapshot.resource


def _resource(claimed: Claimed, handler: Handler) -> str | None:
    if handler.resource is None:
        return claimed.delivery.resource
    return identifier(handler.resource(claimed.delivery))


def _read_snapshot(claimed: Claimed, handler: Handler) -> Snapshot:
    delivery = claimed.delivery
    resource = _resource(claimed, handler)
    if resource is None:
        raise HandlerError(
            f"the delivery ({delivery.event_type}) names no resource: give the handler resource=..., or narrow its "
            "event types"
        )
    version = delivery.version if handler.version is None else read_version(handler.version(delivery))
    if version is None:
        raise UncomparableVersion(
            f"the delivery ({delivery.event_type}) carries no version: give the handler version=..., or narrow its "
            "event types"
        )
    deleted = delivery.deleted if handler.deleted is None else bool(handler.deleted(delivery))
    return Snapshot(claimed, handler, resource, version, deleted)
