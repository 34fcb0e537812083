"""The worker's cycle on one connection: claim, then hold and work, each in its own transaction (D9, D10)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlalchemy.exc import DBAPIError

from hookledger.handlers import NO_HANDLER
from hookledger.ledger.failure import is_conflict, is_distress, is_hindrance, is_outage, shutdown_told
from hookledger.ledger.rows import Buried, ClaimedRow, GivenBack, Parked
from hookledger.worker.batch import Batch, Conflict, Tools
from hookledger.worker.connector import Connector
from hookledger.worker.crashed import IN_WORDS, Losses, has_crashed_enough, in_order
from hookledger.worker.fingerprint import fingerprint
from hookledger.worker.heal import Heal
from hookledger.worker.hold import hold
from hookledger.worker.look import Look
from hookledger.worker.outcome import BatchReport, Claimed, DeathReason, Settled, told
from hookledger.worker.pauses import park, pauses_of, read_pauses
from hookledger.worker.received import Received, fresh, large_bodies
from hookledger.worker.revive import Reviver
from hookledger.worker.transaction import Spoiled

logger = logging.getLogger(__name__)

TRIES = 5
TRIES_TOGETHER = 2
"""How often a transaction that met a deadlock is run at once, of one delivery and of several; those then go alone."""

Observer = Callable[[Sequence[Settled]], None]
Refused = Mapping[str, BaseException]


class Cycle:
    """Runs batches for one slot. Not shared between slots.

    Args:
        tools: what a batch is worked on with.
        connector: gives the slot's connection.
        batch: deliveries that one claim takes at the most.
        observe: told what became of deliveries, after each commit.
        heal: closes dead letters that no longer matter; None leaves them alone.
        reviver: looks for what was ignored, before each claim; None leaves it alone.
    """

    def __init__(
        self,
        tools: Tools,
        connector: Connector,
        batch: int,
        observe: Observer,
        heal: Heal | None = None,
        reviver: Reviver | None = None,
    ) -> None:
        self._heal = heal
        self._tools = tools
        self._connector = connector
        self._most = batch
        self._observe = observe
        self._reviver = reviver
        self._size = batch
        self._losses = Losses()
        self._look = Look(tools.full_looks)
        self._taken_by_claim = 0
        self.claimed_all = False
        """Whether the last claim left due deliveries behind, as far as it can tell."""
        self.revived = False
        """Whether the next page of ignored deliveries is to be looked at without a pause."""
        self.taken: dict[int, GivenBack] = {}
        """Deliveries of our claim whose end is not committed yet; after an outage they are due again, uncharged."""
        self._uncharged: GivenBack | None = None
        """What undoes the claim of a delivery whose charge is being committed."""

    def run(self) -> int:
        """Claim a batch and work on it. Returns how many deliveries were claimed.

        Raises:
            DBAPIError: when the database is away; what was taken is in `taken`.
        """
        try:
            self._refund()
            if self._heal is not None:
                self._tell(self._heal.look(self._connector.connection(), time.monotonic()))
            if self._reviver is not None:
                self.revived = self._reviver.step(self._connector.connection(), time.monotonic())
            rows, large = self._claim()
            if rows:
                self._work(Received(self._tools.inbox, rows, large))
        except DBAPIError as error:
            if is_hindrance(error) or is_distress(error):
                # A time limit of the role, perhaps, that fewer at a time fit into; or a handler that uses up the disk,
                # which must not hold up others: what is given back goes behind what waits.
                self._size = max(1, self._size // 2)
            raise
        return self._taken_by_claim

    def _refund(self) -> None:
        self._connector.connection()
        guilty = self._losses.judge(self._connector.started_at)
        if guilty is not None:
            # Its handler seems to be what kills the connection: left as after a crash, so it goes alone.
            self.taken.pop(guilty, None)
        if self.taken:
            uncharged = [] if self._uncharged is None else [self._uncharged]
            self._make_due([*self.taken.values(), *uncharged])
            self._uncharged = None
            logger.info("gave back %d deliveries that an outage had interrupted", len(self.taken))
            self.taken.clear()

    def _claim(self) -> tuple[list[ClaimedRow], dict[int, bytes]]:
        connection, repository = self._connector.connection(), self._tools.repository
        with connection.begin():
            since = self._look.since(time.monotonic())
            rows = repository.claim(connection, self._size, self._tools.inbox.retry, since=since)
            self._taken_by_claim = len(rows)
            self._look.found(rows, time.monotonic(), all_taken=len(rows) < self._size)
            if pauses_of(rows):
                rows = self._park(rows)
            # Before the commit, whose answer may be lost: what was not claimed will not be refunded.
            self.taken = {row.id: _given_back(row) for row in rows}
            wanted = large_bodies(rows)
            large = repository.read_bodies(connection, wanted) if wanted else {}
        self.claimed_all = self._taken_by_claim == self._size
        if not self._taken_by_claim and self._look.again(time.monotonic()):
            return self._claim()
        return rows, large

    def _park(self, rows: list[ClaimedRow]) -> list[ClaimedRow]:
        """Give back what is paused, in the transaction that claimed it, so that a crash charges nothing. Returns the
        rest."""
        handlers_for, pauses = self._tools.inbox.handlers_for, pauses_of(rows)
        if not any(pauses.stops(row.source, handlers_for(row.source, row.event_type)) for row in rows):
            return rows
        connection, repository = self._connector.connection(), self._tools.repository
        # Read anew and locked: what is resumed meanwhile is not parked.
        pauses = read_pauses(repository.hold_pauses(connection))
        parked: dict[int, Parked] = {}
        for row in rows:
            handlers = handlers_for(row.source, row.event_type)
            if pauses.stops(row.source, handlers):
                parked[row.id] = park(row, pauses, handlers, self._tools.random.random())
        repository.park(connection, list(parked.values()))
        return [row for row in rows if row.id not in parked]

    def _work(self, received: Received) -> None:
        self._leave_unread(received.unread)
        healthy = [received.claimed(row) for row in received.rows if not row.crashed]
        if healthy:
            self._together(healthy)
        crashed = in_order(received.rows)
        for position, row in enumerate(crashed):
            if self._tools.stopping():
                self._make_due([self.taken.pop(row.id) for row in crashed[position:]])
                return
            self._after_crash(received, row)

    def _leave_unread(self, rows: Sequence[ClaimedRow]) -> None:
        """Give back what did not fit into memory together with the rest."""
        if rows:
            self._make_due([self.taken.pop(row.id) for row in rows])

    def _together(self, claimed: Sequence[Claimed]) -> None:
        known: dict[int, Refused] = {}
        try:
            report = self._transaction(claimed)
        except (Spoiled, Conflict, DBAPIError) as error:
            if isinstance(error, DBAPIError) and is_outage(error):
                raise
            logger.info("a batch of %d was rolled back, its deliveries go alone: %s", len(claimed), error)
            if isinstance(error, Conflict):
                # Fewer rows locked at a time are fewer to meet others at.
                self._size = max(1, len(claimed) // 2)
            if isinstance(error, Spoiled):
                known[error.delivery_id] = {error.handler.name: error.error}
        else:
            self._adapt(len(claimed), report)
            return
        started = time.monotonic()
        for position, one in enumerate(claimed):
            # Those that wait are not held: they must not be taken for crashed because we take long.
            late = position > 0 and time.monotonic() - started >= self._tools.time_budget
            if late or self._tools.stopping():
                self._give_back(claimed[position:])
                self._size = max(1, position)
                return
            self._alone(one, known.get(one.delivery.id, {}))

    def _alone(self, claimed: Claimed, known: Refused) -> None:
        """Work on one delivery in a transaction of its own, and find out which handler breaks it, if one does.

        Args:
            claimed: the delivery.
            known: handlers that are charged without being run again.
        """
        refused = dict(known)
        guess: Refused = {}
        guesses: Iterator[Refused] | None = None
        while True:
            try:
                self._transaction([fresh(claimed)], alone=True, refused={**refused, **guess})
            except Conflict:
                self._give_back([claimed])
                return
            except Spoiled as spoiled:
                refused[spoiled.handler.name] = spoiled.error
            except DBAPIError as error:
                if is_outage(error):
                    raise
                if guesses is None:
                    guesses = _guesses(claimed, refused, error)
                found = next(guesses, None)
                if found is None:
                    # Not a handler's fault, and not to be tried at once for ever.
                    self.taken.pop(claimed.delivery.id, None)
                    raise
                guess = found
            else:
                return

    def _transaction(
        self, claimed: Sequence[Claimed], *, alone: bool = False, refused: Refused | None = None
    ) -> BatchReport:
        """Work on deliveries in one transaction; one that met a deadlock is run again, charged to nobody.

        Raises:
            Conflict: it met one each time.
            Spoiled: a handler ended the transaction.
            DBAPIError: a statement of ours failed, or the commit.
        """
        for turn in range(TRIES if alone else TRIES_TOGETHER):
            if turn:
                claimed = [fresh(one) for one in claimed]
            connection = self._connector.connection()
            batch = Batch(self._tools, connection, claimed, alone, refused or {})
            try:
                with connection.begin():
                    self._connector.set_up(connection)
                    report = batch.work()
            except Conflict:
                self._claim_fewer()
                continue
            except DBAPIError as error:
                if is_conflict(error):
                    self._claim_fewer()
                    continue
                if batch.running is not None:
                    self._note_loss(batch.running.delivery.id, error)
                raise
            else:
                self._losses.committed()
                self._committed(claimed, report)
                return report
            finally:
                self._connector.clean()
        raise Conflict("it met a deadlock each time")

    def _note_loss(self, delivery_id: int, error: DBAPIError) -> None:
        """Note what happened under the handler of a delivery; one that it happens to too often is left as after a
        crash, so that it goes alone."""
        if not is_distress(error):
            # Whether that counts is known when there is a connection again.
            told = shutdown_told(error) or self._connector.told
            self._losses.note(delivery_id, told, self._connector.started_at)
        elif self._losses.count_distress(delivery_id):
            self.taken.pop(delivery_id, None)

    def _after_crash(self, received: Received, row: ClaimedRow) -> None:
        """Run a delivery whose last attempt ended in a crash: alone, charged just before, never with others."""
        inbox, repository = self._tools.inbox, self._tools.repository
        if has_crashed_enough(row, inbox):
            self._bury_crashed(received.claimed(row))
            return
        connection = self._connector.connection()
        with connection.begin():
            held = hold(connection, repository, [(row.id, row.attempts)])
            attempts = repository.claim_one(connection, row.id, row.attempts, inbox.retry) if held else None
            if attempts is not None:
                # Before the commit, as in a claim: an outage that swallows its answer must not count as a crash. Should
                # it not have come about, the row is as our claim left it.
                self._uncharged = self.taken.get(row.id)
                self.taken[row.id] = GivenBack(row.id, attempts, 1, None)
        self._uncharged = None
        if attempts is None:
            self.taken.pop(row.id, None)
            return
        self._alone(received.claimed(row, attempts), {})

    def _bury_crashed(self, claimed: Claimed) -> None:
        delivery, attempts = claimed.delivery, claimed.attempts
        words = IN_WORDS.format(attempts=attempts)
        mark = fingerprint("crash", RuntimeError(f"{delivery.source} {delivery.event_type}"))
        connection, repository = self._connector.connection(), self._tools.repository
        with connection.begin():
            held = hold(connection, repository, [(delivery.id, attempts)])
            if held:
                buried = Buried(delivery.id, attempts, DeathReason.CRASHED.value, words, mark)
                repository.bury(connection, [buried])
        self.taken.pop(delivery.id, None)
        if held:
            self._tell([told(delivery, NO_HANDLER, f"dead ({DeathReason.CRASHED.value})", error=words)])

    def _give_back(self, claimed: Sequence[Claimed]) -> None:
        self._make_due([self.taken[one.delivery.id] for one in claimed])
        self._committed(claimed, BatchReport(given_back=len(claimed)))

    def _make_due(self, given_back: Sequence[GivenBack]) -> None:
        connection, repository = self._connector.connection(), self._tools.repository
        with connection.begin():
            held = hold(connection, repository, [(row.delivery_id, row.attempts) for row in given_back])
            repository.give_back(connection, [row for row in given_back if row.delivery_id in held])

    def _adapt(self, worked: int, report: BatchReport) -> None:
        """Claim fewer while a batch does not fit into the time budget, so that little has to be given back."""
        if report.given_back:
            self._size = max(1, worked - report.given_back)
        elif self._size < self._most:
            self._size = min(self._most, self._size * 2)

    def _claim_fewer(self) -> None:
        """Fewer locks at a time meet those of others less often; each batch that succeeds doubles it again."""
        self._size = max(1, self._size // 2)

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
                    one.error.partition("\n")[0] + (f" ({one.place})" if one.place else ""),
                    exc_info=one.raised,
                    extra={"delivery_id": one.delivery_id, "source": one.source, "handler": one.handler},
                )
        if settled:
            self._observe(settled)


def _given_back(row: ClaimedRow) -> GivenBack:
    """What undoes the claim of a row. One that crashed was not charged by it."""
    return GivenBack(row.id, row.attempts, 0 if row.crashed else 1, row.last_error)


def _guesses(claimed: Claimed, refused: Refused, error: BaseException) -> Iterator[Refused]:
    """Who may have broken the commit: each handler by itself, then all of them."""
    left = [handler.name for handler in claimed.handlers if handler.name not in refused]
    for name in left:
        yield {name: error}
    if len(left) > 1:
        yield dict.fromkeys(left, error)
