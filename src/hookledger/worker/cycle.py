"""The worker's cycle on one connection: claim, then hold and work, each in its own transaction (D9, D10)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.exc import DBAPIError

from hookledger.delivery import Delivery
from hookledger.errors import UnreadableBody
from hookledger.handlers import NO_HANDLER
from hookledger.ledger.failure import is_conflict, is_lost, is_outage
from hookledger.ledger.repository import Buried, ClaimedRow, GivenBack
from hookledger.worker.batch import Batch, Conflict, Tools, told, write_failed
from hookledger.worker.fingerprint import fingerprint
from hookledger.worker.outcome import BatchReport, Claimed, DeathReason, Failure, Settled
from hookledger.worker.transaction import HandlerConnection, Spoiled

logger = logging.getLogger(__name__)

TRIES = 5
"""How often a transaction that met a deadlock is run again at once, before its deliveries go alone."""

Observer = Callable[[Sequence[Settled]], None]


class Cycle:
    """Runs batches for one slot. Not shared between slots.

    Args:
        tools: what a batch is worked on with.
        batch: deliveries that one claim takes at the most.
        observe: told what became of deliveries, after each commit.
    """

    def __init__(self, tools: Tools, batch: int, observe: Observer) -> None:
        self._tools = tools
        self._most = batch
        self._observe = observe
        self._size = batch
        self.taken: dict[int, GivenBack] = {}
        """Deliveries that our claim charged and whose end is not committed yet; refunded after an outage."""

    def run(self, connection: HandlerConnection) -> int:
        """Claim a batch and work on it. Returns how many deliveries were claimed.

        Raises:
            DBAPIError: when the database is away; what was taken is in `taken`.
        """
        self._refund(connection)
        rows = self._claim(connection)
        if not rows:
            return 0
        healthy = [self._claimed(row) for row in rows if not row.crashed]
        for claimed in healthy:
            self._take(claimed)
        if healthy:
            self._together(connection, healthy)
        for row in rows:
            if row.crashed and not self._tools.stopping():
                self._after_crash(connection, row)
        return len(rows)

    @property
    def claimed_all(self) -> bool:
        """Whether the last claim left due deliveries behind, as far as it can tell."""
        return self._left

    _left = False

    def _refund(self, connection: HandlerConnection) -> None:
        if self.taken:
            with connection.begin():
                self._tools.repository.give_back(connection, list(self.taken.values()))
            logger.info("gave back %d deliveries that an outage had interrupted", len(self.taken))
            self.taken.clear()

    def _claim(self, connection: HandlerConnection) -> list[ClaimedRow]:
        with connection.begin():
            # Losing a claim is harmless, so it waits for no disk.
            connection.exec_driver_sql("SELECT set_config('synchronous_commit', 'off', true)")
            rows = self._tools.repository.claim(connection, self._size, self._tools.inbox.retry)
        self._left = len(rows) == self._size
        rows.sort(key=_arrival)
        return rows

    def _claimed(self, row: ClaimedRow, attempts: int | None = None) -> Claimed:
        inbox = self._tools.inbox
        source = inbox.sources.get(row.source)
        attempts = row.attempts if attempts is None else attempts
        delivery = Delivery(
            id=row.id,
            source=row.source,
            event_id=row.event_id,
            event_type=row.event_type,
            resource=row.resource,
            version=None if row.version is None else tuple(row.version),
            received_at=row.received_at,
            position=row.position,
            attempt=attempts,
            body=row.body or b"",
            headers_json=row.headers or "[]",
            read_document=_unknown_document if source is None else source.document,
            is_deleted=_not_deleted if source is None else source.deleted,
        )
        handlers = inbox.handlers_for(row.source, row.event_type)
        return Claimed(delivery, attempts, row.last_error, handlers, has_payload=row.body is not None)

    def _take(self, claimed: Claimed) -> None:
        id = claimed.delivery.id
        self.taken[id] = GivenBack(id, claimed.attempts, 1, claimed.last_error)

    def _together(self, connection: HandlerConnection, claimed: Sequence[Claimed]) -> None:
        try:
            report = self._transaction(connection, claimed)
        except (Spoiled, Conflict, DBAPIError) as error:
            if isinstance(error, DBAPIError) and (is_lost(error) or is_outage(error)):
                raise
            if len(claimed) == 1:
                self._alone(connection, claimed[0], error)
                return
            logger.info("a batch of %d was rolled back, its deliveries go alone: %s", len(claimed), error)
            for one in claimed:
                if self._tools.stopping():
                    self._give_back(connection, [one])
                else:
                    self._together(connection, [one])
            return
        self._adapt(len(claimed), report)

    def _transaction(self, connection: HandlerConnection, claimed: Sequence[Claimed]) -> BatchReport:
        """Work on deliveries in one transaction; one that met a deadlock is run again, charged to nobody."""
        for left in reversed(range(TRIES)):
            try:
                with connection.begin():
                    report = Batch(self._tools, connection, claimed).work()
            except Conflict:
                if not left:
                    raise
            except DBAPIError as error:
                if not left or not is_conflict(error):
                    raise
            else:
                self._committed(claimed, report)
                return report
            finally:
                self._clean(connection)
        raise AssertionError("unreachable")

    def _alone(self, connection: HandlerConnection, claimed: Claimed, error: Exception) -> None:
        """Book the failure of a delivery whose own transaction could not be committed."""
        if isinstance(error, Conflict) or is_conflict(error):
            self._give_back(connection, [claimed])
            return
        cause = error.error if isinstance(error, Spoiled) else error
        report = BatchReport()
        with connection.begin():
            held = self._tools.repository.hold(connection, [(claimed.delivery.id, claimed.attempts)], wait=True)
            if held and claimed.handlers:
                failures = {claimed.delivery.id: [Failure(claimed.handlers[0], cause)]}
                write_failed(self._tools, connection, [claimed], failures, report)
        self._committed([claimed], report)

    def _give_back(self, connection: HandlerConnection, claimed: Sequence[Claimed]) -> None:
        with connection.begin():
            self._tools.repository.give_back(connection, [self.taken[one.delivery.id] for one in claimed])
        self._committed(claimed, BatchReport(given_back=len(claimed)))

    def _after_crash(self, connection: HandlerConnection, row: ClaimedRow) -> None:
        """Run a delivery whose last attempt ended in a crash: alone, charged just before, never with others."""
        inbox = self._tools.inbox
        handlers = inbox.handlers_for(row.source, row.event_type)
        most = max([inbox.retry_of(handler).max_attempts for handler in handlers], default=1)
        # The first crash happened in company, so it proves nothing: everybody gets one attempt alone.
        if row.attempts >= max(most, 2):
            self._bury_crashed(connection, row)
            return
        with connection.begin():
            attempts = self._tools.repository.claim_one(connection, row.id, row.attempts, inbox.retry)
        if attempts is None:
            return
        claimed = self._claimed(row, attempts)
        self._take(claimed)
        self._together(connection, [claimed])

    def _bury_crashed(self, connection: HandlerConnection, row: ClaimedRow) -> None:
        words = f"the worker died in each of the last attempts ({row.attempts} in all)"
        mark = fingerprint("crash", RuntimeError(f"{row.source} {row.event_type}"))
        with connection.begin():
            held = self._tools.repository.hold(connection, [(row.id, row.attempts)], wait=True)
            if held:
                buried = Buried(row.id, row.attempts, DeathReason.CRASHED.value, words, mark)
                self._tools.repository.bury(connection, [buried])
        if held:
            delivery = self._claimed(row).delivery
            self._tell([told(delivery, NO_HANDLER, f"dead ({DeathReason.CRASHED.value})", error=words)])

    def _adapt(self, worked: int, report: BatchReport) -> None:
        """Claim fewer while a batch does not fit into the time budget, so that little has to be given back."""
        if report.given_back:
            self._size = max(1, worked - report.given_back)
        elif self._size < self._most:
            self._size = min(self._most, self._size * 2)

    def _committed(self, claimed: Sequence[Claimed], report: BatchReport) -> None:
        for one in claimed:
            self.taken.pop(one.delivery.id, None)
        if report.lost:
            logger.info("%d deliveries of a batch were no longer ours", report.lost)
        self._tell(report.settled)

    def _tell(self, settled: Sequence[Settled]) -> None:
        for one in settled:
            if one.error is not None:
                logger.warning(
                    "delivery %d (%s %s) %s in %s at attempt %d: %s",
                    one.delivery_id,
                    one.source,
                    one.event_type,
                    one.outcome,
                    one.handler,
                    one.attempt,
                    one.error.partition("\n")[0],
                    extra={"delivery_id": one.delivery_id, "source": one.source, "handler": one.handler},
                )
        if settled:
            self._observe(settled)

    def _clean(self, connection: HandlerConnection) -> None:
        """Leave no half-ended transaction behind, whatever a handler did to SQLAlchemy's view of it."""
        connection.running = False
        if connection.closed or connection.invalidated:
            return
        if connection.in_transaction():
            connection.rollback()
        driver: Any = connection.connection.driver_connection
        if driver.pgconn.transaction_status != 0 and not driver.closed:
            connection.connection.rollback()


def _arrival(row: ClaimedRow) -> int:
    return row.id


def _unknown_document(delivery: Delivery) -> Any:
    raise UnreadableBody(f"the inbox has no source {delivery.source!r} that could read this delivery")


def _not_deleted(delivery: Delivery) -> bool:
    return False
