"""The open transaction as a handler gets it: guarded, and with a savepoint from the first touch (D6).

The handler's connection is a real SQLAlchemy Connection, so all of SQLAlchemy works on it. While a handler
runs, the first statement, or the first look at the driver's connection, opens a savepoint; commit, rollback
and close are refused. A handler that never touches the connection costs no statement at all.
"""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.orm import Session
from sqlalchemy.pool import PoolProxiedConnection

from hookledger.errors import ErrorSwallowed, HandlerError, TransactionEnded
from hookledger.worker.fingerprint import in_words

SAVEPOINT = "hookledger_handler"
IN_TRANSACTION = 2
IN_ERROR = 3
"""libpq's PQTRANS_INTRANS and PQTRANS_INERROR.
https://www.postgresql.org/docs/current/libpq-status.html#LIBPQ-PQTRANSACTIONSTATUS"""

_ENDS = re.compile(
    r"\s*(commit|end|abort|begin|start\s+transaction|prepare\s+transaction|rollback"
    rf"(?!\s+(?:work\s+|transaction\s+)?to\b)|(?:rollback\s.*|release\s.*){SAVEPOINT})\b",
    re.IGNORECASE | re.DOTALL,
)


class Spoiled(Exception):
    """The transaction is no longer ours to commit: the batch is rolled back and its deliveries go alone."""

    def __init__(self, error: TransactionEnded) -> None:
        super().__init__(str(error))
        self.error = error


class HandlerConnection(Connection):
    """The connection of a slot; handlers get it while their part of the transaction runs.

    Args:
        engine: the engine that the connection is checked out from.
    """

    def __init__(self, engine: Engine) -> None:
        self.running = False
        self.touched = False
        self.ended: str | None = None
        self.first_error: BaseException | None = None
        super().__init__(engine)
        event.listen(self, "before_cursor_execute", self._before_statement)
        for name in ("commit", "rollback"):
            event.listen(self, name, self._before_end)
        if not event.contains(engine, "handle_error", _note_error):
            event.listen(engine, "handle_error", _note_error)

    def enter(self) -> None:
        """A handler begins."""
        self.running = True
        self.touched = False
        self.ended = None
        self.first_error = None

    def leave(self) -> None:
        """The handler returned: keep its writes.

        Raises:
            TransactionEnded: if it tried to commit, roll back or close.
            ErrorSwallowed: if PostgreSQL has given up its writes.
            HandlerError: if it left a savepoint of its own open.
            Spoiled: if the transaction really is over.
        """
        self.running = False
        self._check_alive()
        if self.ended is not None:
            raise self._ended()
        if self._status() == IN_ERROR:
            cause = "" if self.first_error is None else f"; the first was: {in_words(self.first_error)}"
            raise ErrorSwallowed(
                "the handler caught a database error and returned, but PostgreSQL had already given up its writes; "
                f"wrap the statement that may fail in tx.begin_nested(){cause}"
            )
        if self.in_nested_transaction():
            raise HandlerError("the handler returned with tx.begin_nested() still open: use it in a with statement")
        if self.touched:
            try:
                self._run(f"RELEASE SAVEPOINT {SAVEPOINT}")
            except Exception as error:
                if self.first_error is None and getattr(error, "sqlstate", None) != "3B001":
                    raise
                raise Spoiled(
                    TransactionEnded("the handler ended the transaction on the driver's connection")
                ) from None

    def undo(self) -> None:
        """The handler failed: take its writes back.

        Raises:
            Spoiled: if the transaction is over, so that there is nothing to go back to.
        """
        self.running = False
        self._check_alive()
        while (nested := self.get_nested_transaction()) is not None:
            nested.rollback()
        if self.touched:
            try:
                self._run(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
                self._run(f"RELEASE SAVEPOINT {SAVEPOINT}")
            except Exception as error:
                if getattr(error, "sqlstate", None) != "3B001":
                    raise
                raise Spoiled(
                    TransactionEnded("the handler ended the transaction on the driver's connection")
                ) from None
        elif self._status() == IN_ERROR:
            raise Spoiled(TransactionEnded("the handler broke the transaction without touching its connection"))

    @property
    def connection(self) -> PoolProxiedConnection:
        """The pooled connection of the driver; looking at it counts as a touch."""
        self._touch()
        return super().connection

    def commit(self) -> None:
        self._refuse("commit")
        super().commit()

    def rollback(self) -> None:
        self._refuse("roll back")
        super().rollback()

    def close(self) -> None:
        self._refuse("close")
        super().close()

    def invalidate(self, exception: BaseException | None = None) -> None:
        self._refuse("invalidate")
        super().invalidate(exception)

    def detach(self) -> None:
        self._refuse("detach")
        super().detach()

    def _refuse(self, what: str) -> None:
        if self.running:
            self.ended = self.ended or what
            raise self._ended()

    def _ended(self) -> TransactionEnded:
        return TransactionEnded(
            f"the handler tried to {self.ended} the transaction; it belongs to hookledger, which commits the handler's "
            "writes together with the ledger's. Just return, or raise to have them taken back"
        )

    def _check_alive(self) -> None:
        if not self.in_transaction() or self._status() not in (IN_TRANSACTION, IN_ERROR):
            if self.first_error is not None and not isinstance(self.first_error, TransactionEnded):
                raise self.first_error
            raise Spoiled(
                self._ended()
                if self.ended
                else TransactionEnded("the handler ended the transaction on the driver's connection")
            )

    def _status(self) -> int:
        driver: Any = super().connection.driver_connection
        return int(driver.pgconn.transaction_status)

    def _run(self, statement: str) -> None:
        # Past SQLAlchemy, whose own savepoints a handler may be about to nest into this one.
        cursor = super().connection.cursor()
        try:
            cursor.execute(statement)
        finally:
            cursor.close()

    def _touch(self) -> None:
        if self.running and not self.touched:
            self.touched = True
            self._run(f"SAVEPOINT {SAVEPOINT}")

    def _before_statement(self, _: Connection, cursor: DBAPICursor, statement: str, *rest: Any) -> None:
        if not self.running:
            return
        if _ENDS.match(statement):
            self._refuse(" ".join(statement.split())[:60])
        self._touch()

    def _before_end(self, _: Connection) -> None:
        self._refuse("end")


def _note_error(context: ExceptionContext) -> None:
    connection = context.connection
    if isinstance(connection, HandlerConnection) and connection.running and connection.first_error is None:
        connection.first_error = context.sqlalchemy_exception or context.original_exception


class HandlerSession(Session):
    """The session that a handler gets, bound to the open transaction; it cannot end it."""

    def commit(self) -> None:
        self._refuse("commit")

    def rollback(self) -> None:
        self._refuse("roll back")

    def _refuse(self, what: str) -> None:
        connection = self.bind
        assert isinstance(connection, HandlerConnection)
        connection.ended = connection.ended or what
        raise connection._ended()
