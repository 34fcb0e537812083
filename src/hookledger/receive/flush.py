"""One shared commit: everything that gathered in the line, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from hookledger.errors import Unavailable
from hookledger.ledger.failure import is_conflict, is_demoted, is_hindrance, is_outage, is_rerouted, is_unmigrated
from hookledger.ledger.pooler import REMEDY, is_confused
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import Repeated
from hookledger.receive.announce import announce
from hookledger.receive.batch import Batch, Vanished, again, gathered
from hookledger.receive.lane import Lane
from hookledger.receive.line import Entry
from hookledger.receive.waiter import Outcome
from hookledger.receive.watchdog import Cut, CutOff, Watchdog

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Connect = Callable[[], AbstractContextManager[Connection]]

TRIES = 4
"""How often a commit is tried after a deadlock or on a connection that turned out dead."""
SECONDS_AN_EVENT = 0.002
SECONDS_A_BYTE = 1 / (4 * 1024 * 1024)
"""What the watchdog allows a large commit in addition: a slow server, but one that gets on."""

ALONE = (
    "SELECT pg_catalog.set_config('lock_timeout', '200ms', true),"
    " pg_catalog.set_config('statement_timeout', '4000ms', true)"
)
"""For a commit of one request, after a shared one was hindered: whoever waits for a lock must not keep the others
waiting, and a role's short statement_timeout is for other statements than this one."""


class Committer:
    """Commits entries of the line over an engine.

    Args:
        engine: synchronous, or the synchronous side of an asynchronous one.
        repository: the ledger.
        cut_after: seconds after which a commit that does not end is cut.
    """

    def __init__(self, engine: Engine, repository: Repository, *, cut_after: float) -> None:
        # Two statements have to see what others have committed meanwhile, whatever level the engine was made with.
        self._engine = engine.execution_options(isolation_level="READ COMMITTED")
        # What is new is recorded by one statement, which is a transaction by itself: one trip to the server, not three.
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._repository = repository
        self._cut_after = cut_after
        self._watchdog = Watchdog(engine)
        self._is_usual: bool | None = None
        """Whether READ COMMITTED is what a statement by itself runs in."""

    def lane(self) -> Lane:
        """A lane for commits that follow each other."""
        return Lane(self._single)

    def flush(self, entries: Sequence[Entry], lane: Lane) -> list[Outcome | Exception]:
        """Commit the entries; if one of them spoils the transaction, each alone.

        Args:
            entries: in the order of their arrival.
            lane: that nobody else uses meanwhile.

        Returns:
            An outcome or an error for each entry, in their order.
        """
        batch = gathered(entries)
        if not batch.is_plain:
            # All of a request or nothing: its copies and its new events go in one transaction.
            try:
                outcomes, repeated = self._try(entries, lambda connection: self._all(connection, batch))
            except Exception as error:
                return self._failed(entries, error)
            for copy in repeated:
                _tell(copy)
            return list(outcomes)
        return self._plain(batch, lane)

    def _plain(self, batch: Batch, lane: Lane) -> list[Outcome | Exception]:
        """Commit requests of one event each: those that are new first, by themselves."""
        entries = batch.entries
        try:
            new = self._try(entries, lambda connection: batch.record(connection, self._repository), lane)
        except Exception as error:
            return self._failed(entries, error)
        outcomes: list[Outcome | Exception] = list(batch.outcomes(new))
        copies = batch.copies(new)
        if not copies:
            return outcomes
        known = [index for index, outcome in enumerate(outcomes) if outcome == "repeated"]
        those = [entries[index] for index in known]
        try:
            repeated = self._try(those, lambda connection: again(connection, self._repository, copies))
        except Exception as error:
            for index, outcome in zip(known, self._failed(those, error), strict=True):
                outcomes[index] = outcome
        else:
            for copy in repeated:
                _tell(copy)
        return outcomes

    def _all(self, connection: Connection, batch: Batch) -> tuple[list[Outcome], list[Repeated]]:
        new = batch.record(connection, self._repository)
        return batch.outcomes(new), again(connection, self._repository, batch.copies(new))

    def announce(self) -> None:
        """Send the hint to the workers, if it can be done."""
        try:
            with self._transaction(self._cut_after, self._single.connect) as connection:
                announce(connection, self._repository.schema)
        except Exception as error:
            logger.debug("the hint to the workers was not sent, they will poll: %s", error)

    def _failed(self, entries: Sequence[Entry], error: Exception) -> list[Outcome | Exception]:
        if _is_common(error) or (len(entries) == 1 and not is_hindrance(error) and not isinstance(error, Vanished)):
            _warn("%d requests could not be committed", len(entries), error)
            return [_refusal(error)] * len(entries)
        _warn("a shared commit of %d requests failed, each goes alone", len(entries), error)
        return self._each_alone(entries)

    def _each_alone(self, entries: Sequence[Entry]) -> list[Outcome | Exception]:
        outcomes: list[Outcome | Exception] = []
        common: Exception | None = None
        for entry in entries:
            if common is not None or entry.abandoned:
                outcomes.append(_refusal(common))
                continue
            try:
                outcomes.append(self._alone(entry))
            except Exception as error:
                _warn("%d request could not be committed", 1, error)
                outcomes.append(_refusal(error))
                if _is_common(error):
                    common = error
        return outcomes

    def _alone(self, entry: Entry) -> Outcome:
        batch = gathered([entry])

        def commit(connection: Connection) -> tuple[list[Outcome], list[Repeated]]:
            connection.exec_driver_sql(ALONE)
            return self._all(connection, batch)

        (outcome,), repeated = self._try([entry], commit)
        for copy in repeated:
            _tell(copy)
        return outcome

    def _try(self, entries: Sequence[Entry], work: Callable[[Connection], Result], lane: Lane | None = None) -> Result:
        """Do the work in a transaction, and once more after what passes by itself.

        Args:
            entries: that it is about.
            work: its statements.
            lane: for one statement, which can go without BEGIN and COMMIT.
        """
        size = sum([entry.size for entry in entries])
        events = sum([len(entry.accepted.events) for entry in entries])
        seconds = self._cut_after + events * SECONDS_AN_EVENT + size * SECONDS_A_BYTE
        connect = lane.connected if lane is not None and self._is_usual else self._engine.connect
        for left in reversed(range(TRIES)):
            try:
                with self._transaction(seconds, connect) as connection:
                    if lane is not None and self._is_usual is None:
                        level = connection.exec_driver_sql("SHOW default_transaction_isolation").scalar_one()
                        self._is_usual = level == "read committed"
                    return work(connection)
            except Vanished:
                if not left:
                    raise
            except DBAPIError as error:
                if not left or not (is_conflict(error) or is_rerouted(error) or error.connection_invalidated):
                    raise
        raise AssertionError("unreachable")

    @contextmanager
    def _transaction(self, seconds: float, connect: Connect) -> Iterator[Connection]:
        """An open transaction, committed at the end of the block, and cut after so many seconds.

        Args:
            seconds: from now.
            connect: gives the connection, within the block.

        Raises:
            CutOff: if it was cut. Even when its commit went through: a server that waits for its standby reports
                success when it is cancelled.
                https://www.postgresql.org/docs/current/warm-standby.html#SYNCHRONOUS-REPLICATION
        """
        with self._watchdog.watching(seconds) as watch:
            try:
                with connect() as connection:
                    try:
                        watch.see(connection.connection.driver_connection)
                        with connection.begin():
                            yield connection
                    except DBAPIError as error:
                        if is_demoted(error):
                            # A new connection may lead to the server that is the primary now.
                            connection.invalidate()
                        raise
                    finally:
                        if watch.end() is not None:
                            # The request to cancel may still be on its way, and must not hit the next user.
                            connection.invalidate()
            except Exception as error:
                if watch.cut is not None:
                    raise CutOff(watch.cut) from error
                raise
            if watch.cut is not None:
                raise CutOff(watch.cut)


def _is_common(error: Exception) -> bool:
    """Whether every entry would meet the same error, because the database is away."""
    if isinstance(error, CutOff):
        return error.cut is Cut.SEVERED
    return is_outage(error) and not is_hindrance(error)


def _refusal(error: Exception | None) -> Exception:
    cause = "the time was up" if error is None else _cause(error)
    return Unavailable(f"the event was not committed: {cause}")


def _cause(error: Exception) -> str:
    """The reason in one line, without the details in which PostgreSQL may repeat what a sender sent."""
    original = error.orig if isinstance(error, DBAPIError) else error
    diagnosis = getattr(original, "diag", None)
    message = getattr(diagnosis, "message_primary", None) or str(original).strip()
    told = message.partition("\n")[0] or type(original).__name__
    if is_unmigrated(error):
        return f"{told}; run `hookledger db upgrade`"
    if is_confused(error):
        return f"{told}; behind a pooler in transaction mode {REMEDY}"
    return told


def _warn(what: str, count: int, error: Exception) -> None:
    # The text of SQLAlchemy's errors, and so a traceback, may hold the parameters.
    foreseen = isinstance(error, SQLAlchemyError | CutOff | Vanished | OSError)
    logger.warning(f"{what}: %s", count, _cause(error), exc_info=None if foreseen else error)


def _tell(copy: Repeated) -> None:
    level, how = logging.DEBUG, ""
    if copy.differs:
        level, how = logging.WARNING, " with another body, which is kept apart and not run"
    elif copy.revived:
        level, how = logging.INFO, " and is tried again, having been a dead letter"
    extra = {"delivery_id": copy.delivery_id, "differs": copy.differs, "revived": copy.revived}
    logger.log(level, "delivery %d came again%s", copy.delivery_id, how, extra=extra)
