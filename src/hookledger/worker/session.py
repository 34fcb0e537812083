"""The ORM session that a handler gets, within its part of the open transaction (D6)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session

from hookledger.errors import HandlerError
from hookledger.worker.transaction import HandlerConnection

SETTINGS: dict[str, Any] = {
    # A savepoint of the session's own: a flush that fails takes back just that, and raises its own error.
    "join_transaction_mode": "create_savepoint",
    "expire_on_commit": False,
}


class HandlerSession(Session):
    """A session bound to the open transaction; the handler cannot end it."""

    _ours = False
    _over = False

    def finish(self) -> None:
        """The handler returned: write what the session still holds.

        Raises:
            ErrorSwallowed: if an error of the database was caught, and its writes are gone.
            HandlerError: if a savepoint was left open.
            Whatever the flush raises.
        """
        connection = self._guarded()
        connection.refuse_swallowed()
        if not self.is_active:
            raise connection.swallowed()
        if self.in_nested_transaction():
            raise HandlerError("the handler returned with begin_nested() still open: use it in a with statement")
        self._ours = True
        super().commit()

    def forget(self) -> None:
        """Let go of all objects; whoever kept the session cannot use it for the next delivery."""
        self._ours = self._over = True
        self.expunge_all()

    def get_bind(self, *args: Any, **kwargs: Any) -> Engine | Connection:
        if self._over:
            raise HandlerError("the session was used after its handler had returned")
        return super().get_bind(*args, **kwargs)

    def commit(self) -> None:
        self._refuse("commit")
        super().commit()

    def rollback(self) -> None:
        self._refuse("roll back")
        super().rollback()

    def close(self) -> None:
        self._refuse("close")
        super().close()

    def reset(self) -> None:
        self._refuse("reset")
        super().reset()

    def invalidate(self) -> None:
        self._refuse("invalidate")
        super().invalidate()

    def _refuse(self, what: str) -> None:
        if not self._ours:
            self._guarded().refuse(what)

    def _guarded(self) -> HandlerConnection:
        assert isinstance(self.bind, HandlerConnection)
        return self.bind
