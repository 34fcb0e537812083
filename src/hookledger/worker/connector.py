"""The one connection of a slot: made when it is needed, and made anew when it is gone."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Any

from psycopg.errors import Diagnostic
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from hookledger.ledger.failure import SHUTDOWNS
from hookledger.worker.listen import parameters_of
from hookledger.worker.transaction import HandlerConnection

LIFTED = ("idle_in_transaction_session_timeout", "transaction_timeout")
"""Time limits of the role that a slow handler would run into: the server would cut the connection under it, again and
again, and nobody could be charged for that."""
CHECK_CLIENT = "client_connection_check_interval"
CHECK_CLIENT_EVERY = "2s"
"""How often the server looks, within a statement, whether the worker is still there. Without it the statement of a
worker that was killed runs on to its end, and keeps its rows locked until then.
https://www.postgresql.org/docs/current/runtime-config-connection.html#GUC-CLIENT-CONNECTION-CHECK-INTERVAL"""

# transaction_timeout is known to PostgreSQL 17 and newer; what is not known is not in pg_settings.
_WANTED = """
    SELECT name, CASE WHEN name = %(watched)s THEN %(every)s ELSE '0' END AS value
    FROM pg_catalog.pg_settings
    WHERE name = ANY(%(lifted)s) AND setting <> '0' OR name = %(watched)s AND setting = '0'
"""
_STARTED_AT = "SELECT pg_postmaster_start_time()"
_SET = """
    SELECT set_config(name, value, true) FROM unnest(%(names)s::text[], %(values)s::text[]) AS wanted (name, value)
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
        self._settings: dict[str, str] = {}
        self.told: str | None = None
        """The code by which the server said that it shuts down, on the last connection."""
        self.started_at: datetime | None = None
        """When the server was started to which the last connection led."""

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
            self.told = None
            # An immediate shutdown is told by a notice, before the connection ends.
            self.driver_connection.add_notice_handler(self._note)
            with connection.begin():
                self.started_at = connection.exec_driver_sql(_STARTED_AT).scalar()
                wanted = {"lifted": list(LIFTED), "watched": CHECK_CLIENT, "every": CHECK_CLIENT_EVERY}
                self._settings = {row.name: row.value for row in connection.exec_driver_sql(_WANTED, wanted)}
                self._leave_out_what_cannot_be_set(connection)
                connection.exec_driver_sql(_KEEPALIVES)
            self.parameters = parameters_of(self.driver_connection)
        return self._connection

    def set_up(self, connection: HandlerConnection) -> None:
        """Set, for this transaction alone, what a session should have: behind a pooler each transaction may get
        another one."""
        if self._settings:
            connection.exec_driver_sql(_SET, {"names": list(self._settings), "values": list(self._settings.values())})

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
        if self.driver_connection is not None:
            self.driver_connection.remove_notice_handler(self._note)
        self.driver_connection = None
        if connection is not None:
            connection.running = False
            with contextlib.suppress(Exception):
                if for_good or connection.in_transaction() or connection.lost:
                    connection.invalidate()
                connection.close()

    def _note(self, notice: Diagnostic) -> None:
        if notice.sqlstate in SHUTDOWNS:
            self.told = notice.sqlstate

    def _leave_out_what_cannot_be_set(self, connection: HandlerConnection) -> None:
        try:
            with connection.begin_nested():
                self.set_up(connection)
        except DBAPIError:
            # Not every platform can watch a client: https://www.postgresql.org/docs/current/runtime-config-connection.html
            self._settings.pop(CHECK_CLIENT, None)
