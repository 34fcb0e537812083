"""What the receiver and the worker do with the ledger: functions of an open transaction that never commit.

All are synchronous on a DB-API level `Connection`; asynchronous callers run them in SQLAlchemy's greenlet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from hookledger.ledger.arrays import array, bound, version_of
from hookledger.ledger.failure import sqlstate
from hookledger.ledger.prepare import NO_ADVISORY_LOCKS, lock_key
from hookledger.ledger.rows import (
    AddedNumber,
    Buried,
    ClaimedRow,
    Copy,
    EarlierRequest,
    EffectKey,
    GivenBack,
    IgnoredRow,
    LockedStates,
    NewEffect,
    NewEvent,
    NewFailure,
    NewRequest,
    NewState,
    Parked,
    Position,
    Postponed,
    Repeated,
    StateKey,
    Watermark,
)
from hookledger.ledger.statements import Statements, claim_statement, statements
from hookledger.retry import RetryPolicy

LARGEST_ID = 2**63 - 1

_BRIEFLY = (
    "SELECT pg_catalog.set_config('lock_timeout', '2s', true),"
    " pg_catalog.set_config('idle_in_transaction_session_timeout', '10s', true)"
)


@dataclass(frozen=True)
class Repository:
    """The ledger in one schema."""

    schema: str
    sql: Statements

    @classmethod
    def of(cls, schema: str) -> Repository:
        """The repository of a schema; its statements are built once."""
        return cls(schema, statements(schema))

    def record(
        self, connection: Connection, requests: Sequence[NewRequest], events: Sequence[NewEvent]
    ) -> dict[int, int]:
        """Record what is new. Returns the delivery ids by the index of the event, from 0."""
        parameters = bound("request", NewRequest._fields, requests)
        parameters.update(bound("event", NewEvent._fields, events))
        return {number - 1: id for number, id in connection.exec_driver_sql(self.sql.record, parameters)}

    def record_earlier(
        self, connection: Connection, requests: Sequence[EarlierRequest], events: Sequence[NewEvent]
    ) -> dict[int, int]:
        """As `record`, for requests with a time of their own."""
        parameters = bound("request", EarlierRequest._fields, requests)
        parameters.update(bound("event", NewEvent._fields, events))
        result = connection.exec_driver_sql(self.sql.record_earlier, parameters)
        return {number - 1: id for number, id in result}

    def known(
        self, connection: Connection, events: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[int, bytes]]:
        """The deliveries (id, digest) of those events (source, event_id) that the ledger has."""
        result = connection.exec_driver_sql(self.sql.known, bound("event", ("source", "event_id"), events))
        return {(source, event_id): (id, bytes(digest)) for source, event_id, id, digest in result}

    def record_again(self, connection: Connection, copies: Sequence[Copy]) -> list[Repeated]:
        """Record copies of known events, and revive those that are dead."""
        # The copies of one request share its body, which is sent and kept once.
        requests: dict[tuple[int, int], tuple[str, bytes]] = {}
        numbers: list[int] = []
        for copy in copies:
            same = (id(copy.headers), id(copy.body))
            requests.setdefault(same, (copy.headers, copy.body))
            numbers.append(len(requests))
        parameters = bound("again", ("headers", "body"), list(requests.values()))
        given = [(n, copy.source, copy.event_id, copy.digest) for n, copy in zip(numbers, copies, strict=True)]
        parameters.update(bound("copy", ("again", "source", "event_id", "digest"), given))
        return [Repeated(*row) for row in connection.exec_driver_sql(self.sql.record_again, parameters)]

    def claim(
        self, connection: Connection, batch: int, policy: RetryPolicy, *, since: Position | None = None
    ) -> list[ClaimedRow]:
        """Take up to `batch` due deliveries, of those from `since` on; they are ours until the due time now written."""
        due_at, id = ("-infinity", 0) if since is None else since
        result = connection.exec_driver_sql(claim_statement(self.schema, batch), {"since": due_at, "since_id": id})
        claimed = [ClaimedRow._make(row) for row in result.all()]
        if claimed:
            parameters = {"ids": array([row.id for row in claimed]), **_backoff(policy)}
            connection.exec_driver_sql(self.sql.take, parameters)
        return claimed

    def read_bodies(self, connection: Connection, payloads: Sequence[tuple[datetime, int]]) -> dict[int, bytes]:
        """The bodies of payloads (received_at, id), by id."""
        parameters = bound("payload", ("received_at", "id"), payloads)
        return {row[0]: row[1] for row in connection.exec_driver_sql(self.sql.read_bodies, parameters)}

    def claim_one(self, connection: Connection, delivery_id: int, attempts: int, policy: RetryPolicy) -> int | None:
        """Charge an attempt to a delivery that crashed; the new count, or None if it is no longer ours."""
        parameters: dict[str, Any] = {"delivery_id": delivery_id, "attempts": attempts, **_backoff(policy)}
        row = connection.exec_driver_sql(self.sql.claim_one, parameters).first()
        return None if row is None else int(row[0])

    def hold(self, connection: Connection, ours: Sequence[tuple[int, int]], *, wait: bool = False) -> set[int]:
        """Lock the rows (delivery id, attempts) that are still ours; the ids that were."""
        if not ours:
            return set()
        ids, attempts = zip(*ours, strict=True)
        if not wait and len(set(attempts)) == 1:
            alike = {"ids": array(ids), "attempts": attempts[0]}
            return set(connection.exec_driver_sql(self.sql.hold_alike, alike).scalars())
        statement = self.sql.hold_waiting if wait else self.sql.hold
        result = connection.exec_driver_sql(statement, bound("ours", ("delivery_id", "attempts"), ours))
        return set(result.scalars())

    def look_up(self, connection: Connection, events: Sequence[tuple[str, str]]) -> set[EffectKey]:
        """Outcomes that the events (source, event_id) have already."""
        result = connection.exec_driver_sql(self.sql.look_up, bound("event", ("source", "event_id"), events))
        return {(handler, source, event_id) for handler, source, event_id in result}

    def insert_states(self, connection: Connection, states: Sequence[StateKey]) -> None:
        """Make resource states that do not exist."""
        connection.exec_driver_sql(self.sql.insert_states, bound("state", ("handler", "source", "resource"), states))

    def lock_states(self, connection: Connection, states: Sequence[StateKey]) -> LockedStates:
        """Lock resource states in the given order, which must be the same for everybody, and read their watermarks."""
        locked = LockedStates({}, {})
        keys = bound("state", ("handler", "source", "resource"), states)
        for handler, source, resource, version, delivery_id, place in connection.exec_driver_sql(
            self.sql.lock_states, keys
        ):
            key = (handler, source, resource)
            locked.watermarks[key] = Watermark(None if version is None else version_of(version), delivery_id)
            locked.places[key] = place
        return locked

    def read_states(self, connection: Connection, states: Sequence[StateKey]) -> dict[StateKey, Watermark]:
        """The watermarks of resource states, without a lock: they may be higher by now, and never lower."""
        keys = bound("state", ("handler", "source", "resource"), states)
        return {
            (handler, source, resource): Watermark(None if version is None else version_of(version), delivery_id)
            for handler, source, resource, version, delivery_id in connection.exec_driver_sql(
                self.sql.read_states, keys
            )
        }

    def save_states(self, connection: Connection, states: Sequence[NewState]) -> None:
        """Move watermarks: where the rows are locked, or by their keys."""
        parameters = bound("state", NewState._fields, states)
        if all(state.place is not None for state in states):
            moved = connection.exec_driver_sql(self.sql.save_locked_states, parameters)
            if moved.rowcount == len(states):
                return
        # A handler that wrote to a row of ours has moved it.
        connection.exec_driver_sql(self.sql.save_states, parameters)

    def add_states(self, connection: Connection, numbers: Sequence[AddedNumber]) -> None:
        """Add numbers to states."""
        connection.exec_driver_sql(self.sql.add_states, bound("number", AddedNumber._fields, numbers))

    def settle(self, connection: Connection, effects: Sequence[NewEffect], delivery_ids: Sequence[int]) -> None:
        """Write outcomes, and remove from pending the deliveries that have all of theirs.

        A second effect for the same handler and event is refused by the key.
        """
        parameters = bound("effect", NewEffect._fields, effects)
        parameters["settled"] = array(delivery_ids)
        connection.exec_driver_sql(self.sql.settle, parameters)

    def write_failures(self, connection: Connection, failures: Sequence[NewFailure]) -> None:
        """Record failed attempts."""
        connection.exec_driver_sql(self.sql.write_failures, bound("failure", NewFailure._fields, failures))

    def postpone(self, connection: Connection, postponed: Sequence[Postponed]) -> None:
        """Write when deliveries are tried again, and why."""
        connection.exec_driver_sql(self.sql.postpone, bound("late", Postponed._fields, postponed))

    def give_back(self, connection: Connection, given_back: Sequence[GivenBack]) -> None:
        """Make deliveries due at once, with their attempt refunded."""
        connection.exec_driver_sql(self.sql.give_back, bound("back", GivenBack._fields, given_back))

    def park(self, connection: Connection, parked: Sequence[Parked]) -> None:
        """Make deliveries due later, with their attempt refunded, until what is paused is resumed."""
        connection.exec_driver_sql(self.sql.park, bound("parked", Parked._fields, parked))

    def hold_pauses(self, connection: Connection) -> str | None:
        """What is paused, in the text that the claim gives too; it is not resumed before the transaction ends."""
        found: str | None = connection.exec_driver_sql(self.sql.hold_pauses).scalar_one()
        return found

    def bury(self, connection: Connection, buried: Sequence[Buried]) -> None:
        """Move deliveries to the dead letters."""
        connection.exec_driver_sql(self.sql.bury, bound("dead", Buried._fields, buried))

    def find_ignored(
        self, connection: Connection, most: int, within: float, *, before: int | None = None
    ) -> list[IgnoredRow]:
        """The newest ignored deliveries, of those before one if it is given.

        Args:
            connection: in a transaction.
            most: how many, at the most.
            within: what counts as recent, in seconds.
            before: the id of a delivery.
        """
        parameters = {"before": LARGEST_ID if before is None else before, "most": most, "within": within}
        return [IgnoredRow._make(row) for row in connection.exec_driver_sql(self.sql.find_ignored, parameters)]

    def revive_ignored(self, connection: Connection, delivery_ids: Sequence[int]) -> int:
        """Make deliveries pending that are settled as ignored, and nothing else. Returns how many.

        Whoever does this does it alone, until the end of the transaction: else one that was just made pending, run and
        settled by others could be made pending a second time. Whoever waits for that gives up after a moment, as the
        other one may be a process that was stopped.
        """
        connection.exec_driver_sql(_BRIEFLY)
        try:
            with connection.begin_nested():
                connection.exec_driver_sql(
                    "SELECT pg_catalog.pg_advisory_xact_lock(%(key)s)", {"key": lock_key(self.schema, "revive")}
                )
        except DBAPIError as error:
            if sqlstate(error) not in NO_ADVISORY_LOCKS:
                raise
        queued = connection.exec_driver_sql(self.sql.revive_ignored, {"ids": array(delivery_ids)}).scalars().all()
        if queued:
            # Between our look and our row it may have been replayed by somebody, failed, and died.
            connection.exec_driver_sql(self.sql.leave_dead_letters, {"ids": array(queued)})
        return len(queued)


def _backoff(policy: RetryPolicy) -> dict[str, Any]:
    return {
        "first_delay": policy.first_delay,
        "factor": policy.factor,
        "longest_delay": policy.longest_delay,
        "jitter": policy.jitter,
    }
