"""The open transaction as a handler gets it: guarded, and with a savepoint from the first touch (D6).

The handler's connection is a real SQLAlchemy Connection, so all of SQLAlchemy works on it. While a handler
runs, the first statement, or the first look at the driver's connection, opens a savepoint; commit, rollback
and close are refused. A handler that never touches the connection costs no statement at all.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import Any

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.util import await_only

from hookledger.errors import ErrorSwallowed, HandlerError, TransactionEnded
from hookledger.handlers import Handler
from hookledger.ledger.failure import is_outage
from hookledger.worker.ending import SAVEPOINT, ending
from hookledger.worker.fingerprint import in_words

IN_TRANSACTION = 2
IN_ERROR = 3
"""libpq's PQTRANS_INTRANS and PQTRANS_INERROR.
https://www.postgresql.org/docs/current/libpq-status.html#LIBPQ-PQTRANSACTIONSTATUS"""

DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)

NO_SAVEPOINT = "3B001"
NO_TRANSACTION = "25P01"

GUARD = "hookledger_guard"
_RAISE_GUARD = f"""
    DECLARE {GUARD} CURSOR WITH HOLD FOR
    SELECT concat('a handler must not commit the transaction: it belongs to hookledger', pg_backend_pid())::integer
"""
"""A cursor that outlives its transaction is run to its end by COMMIT, and this one fails there: so PostgreSQL
itself refuses the commit of whoever has the driver's connection, before the writes of other handlers are kept
without the ledger's. https://www.postgresql.org/docs/current/sql-declare.html"""

DEEPEST = 64
"""Savepoints of handlers that succeeded, before they are released together: each is nested into the one before, which
saves its release a round trip of its own, and PostgreSQL keeps as many subtransactions of a transaction at hand.
https://www.postgresql.org/docs/current/subxacts.html"""
SAVEPOINTS = tuple([f"{SAVEPOINT}_{number}" for number in range(DEEPEST + 1)])

ON_THE_DRIVER = "the handler ended the transaction on the driver's connection"


class Spoiled(Exception):
    """The transaction is no longer ours to commit: the batch is rolled back and its deliveries go alone.

    Args:
        error: what the handler did.
    """

    handler: Handler
    delivery_id: int
    """Whose fault it is; set where the handler was called."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(in_words(error))
        self.error = error


class HandlerConnection(Connection):
    """The connection of a slot; handlers get it while their part of the transaction runs.

    Args:
        engine: the engine that the connection is checked out from.
    """

    def __init__(self, engine: Engine) -> None:
        self.running = False
        self.touched = False
        self.guarded = False
        self._kept = 0
        self.ended: str | None = None
        self.first_error: BaseException | None = None
        self.outage: DBAPIError | None = None
        """What a statement of ours met around a handler, which has no part in it."""
        super().__init__(engine)
        self._options = self._execution_options
        self._pgconn = self._driver().pgconn
        event.listen(self, "before_cursor_execute", self._before_statement)
        for name in ("commit", "rollback"):
            event.listen(self, name, self._before_end)
        # Not event.contains, which goes by the address of the engine: that of one that is gone may be this one's.
        if _note_error not in engine.dialect.dispatch.handle_error:
            event.listen(engine, "handle_error", _note_error)

    def begin_batch(self) -> None:
        """A transaction has begun, in which no handler has run yet."""
        self._kept = 0

    def release(self) -> None:
        """Release the savepoints of the handlers that succeeded.

        Raises:
            DBAPIError: if they are gone, because one of those handlers ended the transaction unseen; or if the
                connection is gone.
        """
        if not self._kept:
            return
        self._kept = 0
        try:
            self._run(f"RELEASE SAVEPOINT {SAVEPOINTS[0]}")
        except psycopg.Error as error:
            if self.lost:
                raise lost_error(error) from error
            raise OperationalError("the release of savepoints", None, error, hide_parameters=True) from error

    def enter(self) -> None:
        """A handler begins.

        Raises:
            DBAPIError: as `release` does.
        """
        if self._kept >= DEEPEST:
            self.release()
        self.running = True
        self._options = self._execution_options
        self.touched = False
        self.guarded = False
        self.ended = None
        self.first_error = None
        self.outage = None

    def leave(self, *, check_deferred: bool = False) -> None:
        """The handler returned: keep its writes. Unless it may have done more than can be seen from here, its savepoint
        is released later, together with those of others.

        Args:
            check_deferred: see now to the constraints that are otherwise checked at the commit, where it could
                not be told whose writes break them.

        Raises:
            TransactionEnded: if it tried to commit, roll back or close.
            ErrorSwallowed: if PostgreSQL has given up its writes.
            HandlerError: if it left a savepoint of its own open.
            Spoiled: if the transaction really is over.
            DBAPIError: if the connection is gone.
        """
        self.take_over()
        plain = not self.guarded and not check_deferred
        if (plain or not self.touched) and self.ended is None and self._is_as_we_left_it():
            self._kept += self.touched
            return
        self._check_alive()
        if self.ended is not None:
            raise self._ended()
        self.refuse_swallowed()
        if self.in_nested_transaction():
            raise HandlerError("the handler returned with tx.begin_nested() still open: use it in a with statement")
        if not self.touched:
            return
        try:
            if check_deferred:
                self._run(f"SAVEPOINT {SAVEPOINT}_check")
                self._run("SET CONSTRAINTS ALL IMMEDIATE")
                # Taken back, so that they are deferred again for the handlers that follow.
                self._run(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}_check")
            if self.guarded:
                self._run(f"CLOSE {GUARD}")
            self._run(f"RELEASE SAVEPOINT {SAVEPOINTS[self._kept]}")
        except psycopg.Error as error:
            self._check_alive()
            if error.sqlstate == NO_SAVEPOINT:
                raise Spoiled(TransactionEnded(ON_THE_DRIVER)) from None
            raise

    def undo(self) -> None:
        """The handler failed: take its writes back.

        Raises:
            Spoiled: if the transaction is over, so that there is nothing to go back to.
            DBAPIError: if the connection is gone.
        """
        self.take_over()
        self._check_alive()
        while (nested := self.get_nested_transaction()) is not None:
            nested.rollback()
        if self.touched:
            try:
                self._run(f"ROLLBACK TO SAVEPOINT {SAVEPOINTS[self._kept]}")
                self._run(f"RELEASE SAVEPOINT {SAVEPOINTS[self._kept]}")
            except psycopg.Error:
                self._check_alive()
                if self.outage is not None:
                    raise self.outage from None
                raise Spoiled(TransactionEnded(ON_THE_DRIVER)) from None
        elif self.in_error:
            raise Spoiled(TransactionEnded("the handler broke the transaction without touching its connection"))

    def refuse_swallowed(self) -> None:
        """
        Raises:
            ErrorSwallowed: if PostgreSQL has given up the handler's writes.
        """
        if self.in_error:
            raise self.swallowed()

    def swallowed(self) -> ErrorSwallowed:
        """What is told a handler that caught a database error and went on."""
        cause = "" if self.first_error is None else f"; the first was: {in_words(self.first_error)}"
        return ErrorSwallowed(
            "the handler caught a database error and returned, but PostgreSQL had already given up its writes; "
            f"wrap the statement that may fail in tx.begin_nested(){cause}"
        )

    @property
    def lost(self) -> bool:
        """Whether the connection is gone, as far as the client knows."""
        return self.closed or self.invalidated or bool(self._driver().closed)

    @property
    def in_error(self) -> bool:
        """Whether PostgreSQL takes no more statements until somebody rolls back."""
        return not self.lost and self._status() == IN_ERROR

    @property
    def connection(self) -> PoolProxiedConnection:
        """The pooled connection of the driver; looking at it counts as a touch."""
        if self.running:
            self._touch()
            if not self.guarded:
                self.guarded = True
                self._run(_RAISE_GUARD)
        return super().connection

    def commit(self) -> None:
        self.refuse("commit")
        super().commit()

    def rollback(self) -> None:
        self.refuse("roll back")
        super().rollback()

    def close(self) -> None:
        self.refuse("close")
        super().close()

    def invalidate(self, exception: BaseException | None = None) -> None:
        # With an exception it is SQLAlchemy itself, which found the connection broken.
        if exception is None:
            self.refuse("invalidate")
        super().invalidate(exception)

    def detach(self) -> None:
        self.refuse("detach")
        super().detach()

    def refuse(self, what: str) -> None:
        """
        Raises:
            TransactionEnded: if a handler runs; it may catch that, and fails all the same.
        """
        if self.running:
            self.ended = self.ended or what
            raise self._ended()

    def take_over(self) -> None:
        """The handler has ended, however: from here on the statements are ours."""
        self.running = False
        # SQLAlchemy sets options on the connection itself; with stream_results, for one, our own statements would fail.
        self._execution_options = self._options

    def _ended(self) -> TransactionEnded:
        return TransactionEnded(
            f"the handler tried to {self.ended} the transaction; it belongs to hookledger, which commits the handler's "
            "writes together with the ledger's. Just return, or raise to have them taken back"
        )

    def _is_as_we_left_it(self) -> bool:
        """Whether nothing happened to the transaction: what the usual handler that only returns leaves behind."""
        nested = self.in_nested_transaction() or not self.in_transaction()
        return not nested and self._pgconn.transaction_status == IN_TRANSACTION

    def _check_alive(self) -> None:
        if self.lost:
            raise lost_error(self.first_error)
        if not self.in_transaction() or self._status() not in (IN_TRANSACTION, IN_ERROR):
            raise Spoiled(self._ended() if self.ended else TransactionEnded(ON_THE_DRIVER))

    def _driver(self) -> Any:
        return super().connection.driver_connection

    def _status(self) -> int:
        return int(self._driver().pgconn.transaction_status)

    def _run(self, statement: str) -> None:
        # Past SQLAlchemy, whose own savepoints a handler may be about to nest into this one. Never prepared: that would
        # push handlers' statements out of the driver's store of them.
        driver = self._driver()
        try:
            if isinstance(driver, psycopg.Connection):
                # Past the driver's cursor too, which takes longer than such a statement.
                result = driver.pgconn.exec_(statement.encode())
                if result.status not in DONE:
                    raise error_from_result(result, encoding=driver.info.encoding)
                return
            ran = driver.execute(statement, prepare=False)
            if isawaitable(ran):
                await_only(ran)
        except psycopg.Error as error:
            wrapped = error_of_handler(error)
            if is_outage(wrapped):
                self.outage = wrapped
            raise

    def _touch(self) -> None:
        if not self.touched:
            self.touched = True
            self._run(f"SAVEPOINT {SAVEPOINTS[self._kept]}")

    def _before_statement(self, _: Connection, cursor: DBAPICursor, statement: str, *rest: Any) -> None:
        if not self.running:
            return
        end = ending(statement)
        if end is not None:
            self.refuse(end)
        self._touch()

    def _before_end(self, _: Connection) -> None:
        self.refuse("end")


def lost_error(cause: BaseException | None) -> DBAPIError:
    """The error that says that the connection is gone, made from what told of it."""
    if isinstance(cause, DBAPIError) and cause.connection_invalidated:
        return cause
    told = cause if isinstance(cause, Exception) else psycopg.OperationalError("the connection was lost")
    return error_of_handler(told, lost=True)


def error_of_handler(cause: Exception, *, lost: bool = False) -> DBAPIError:
    """An error of the database that was met while a handler ran, as SQLAlchemy raises those of our statements."""
    if isinstance(cause, DBAPIError) and not lost:
        return cause
    return OperationalError("a statement of a handler", None, cause, hide_parameters=True, connection_invalidated=lost)


def _note_error(context: ExceptionContext) -> None:
    connection = context.connection
    if isinstance(connection, HandlerConnection) and connection.running and connection.first_error is None:
        error = context.sqlalchemy_exception or context.original_exception
        if not isinstance(error, TransactionEnded):
            connection.first_error = error
