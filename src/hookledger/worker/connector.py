"""The one connection of a slot: made when it is needed, and made anew when it is gone."""

from __future__ import annotations

import contextlib
from typing import Any

from sqlalchemy import Engine

from hookledger.worker.listen import parameters_of
from hookledger.worker.transaction import HandlerConnection

# transaction_timeout is known to PostgreSQL 17 and newer; what is not known is not in pg_settings.
_LIMITS = """
    SELECT name FROM pg_catalog.pg_settings
    WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout') AND setting <> '0'
"""
_KEEPALIVES = """
    SELECT set_config(name, wanted, false)
    FROM (VALUES ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '3'), ('tcp_keepalives_count', '3'),
                 ('tcp_user_timeout', '10000')) AS ours (name, wanted)
    JOIN pg_catalog.pg_settings USING (name)
    WHERE setting::integer NOT BETWEEN 1 AND wanted::integer
"""
"""Has the server notice within some twenty seconds that a worker's machine is gone, and release what it had locked. As
the system has it by default, that takes two hours.
https://www.postgresql.org/docs/current/runtime-config-connection.html#GUC-TCP-KEEPALIVES-IDLE"""
_LIFT = "SELECT set_config(name, '0', true) FROM unnest(%(names)s::text[]) AS name"


class Connector:
    """Keeps the connection of a slot.

    Args:
        engine: of the worker.
    """

    def __init__(self, engine: Engine) -> None:
        # The fence of a claim is read at every statement anew, whatever level the engine was made with.
        self.engine = engine.execution_options(isolation_level="READ COMMITTED")
        self.parameters: dict[str, Any] = {}
        """libpq's, of the last connection that was made."""
        self.driver_connection: Any = None
        self._connection: HandlerConnection | None = None
        self._limits: list[str] = []

    def connection(self) -> HandlerConnection:
        """The connection; a new one if there is none, or it is gone.

        Raises:
            SQLAlchemyError: if none can be made.
        """
        if self._connection is not None and self._connection.lost:
            self.drop()
        if self._connection is None:
            connection = self._connection = HandlerConnection(self.engine)
            self.driver_connection = connection.connection.driver_connection
            with connection.begin():
                self._limits = list(connection.exec_driver_sql(_LIMITS).scalars())
                connection.exec_driver_sql(_KEEPALIVES)
            self.parameters = parameters_of(self.driver_connection)
        return self._connection

    def lift_limits(self, connection: HandlerConnection) -> None:
        """Switch off, for this transaction, time limits of the role that a slow handler would run into: the server
        would cut the connection under it, again and again, and nobody could be charged for that."""
        if self._limits:
            connection.exec_driver_sql(_LIFT, {"names": self._limits})

    def clean(self) -> None:
        """Leave no half-ended transaction behind, whatever a handler did to SQLAlchemy's view of it."""
        connection = self._connection
        if connection is None or connection.lost:
            return
        connection.running = False
        # Not only if it is in a transaction: one that SQLAlchemy takes for ended stays in the way of the next.
        connection.rollback()
        driver: Any = connection.connection.driver_connection
        if driver.pgconn.transaction_status != 0 and not driver.closed:
            connection.connection.rollback()

    def drop(self, *, for_good: bool = False) -> None:
        """Give the connection back to the pool; one in an unknown state is not handed to the next user of it.

        Args:
            for_good: close it instead.
        """
        connection, self._connection = self._connection, None
        self.driver_connection = None
        if connection is not None:
            connection.running = False
            with contextlib.suppress(Exception):
                if for_good or connection.in_transaction() or connection.lost:
                    connection.invalidate()
                connection.close()
