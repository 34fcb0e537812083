"""A worker that dies at one of its commits."""

from __future__ import annotations

from hookledger.testing.director import Director, Kind, Observer, backend_of
from hookledger.testing.plan import Then
from hookledger.worker.transaction import HandlerConnection


class WorkerDied(BaseException):
    """Ends a worker where it stands, as the end of its process would. No Exception: nothing that catches those may go
    on."""


class Death:
    """The worker dies at the first commit of its kind. Its connection is ended, as the operating system does for a
    process that is gone, so PostgreSQL itself takes back what was not committed.

    Args:
        moment: one of `DEATHS`.
        director: writes it down.
        observer: ends the connection.
    """

    def __init__(self, moment: Then, director: Director, observer: Observer) -> None:
        self._moment = moment
        self._director = director
        self._observer = observer
        self._dead = False

    def before_statement(self, who: int, connection: HandlerConnection) -> None:
        """A handler of the worker is about to run a statement."""

    def before_commit(self, who: int, connection: HandlerConnection, kind: Kind) -> None:
        """
        Raises:
            WorkerDied: if this is the moment.
        """
        if self._dead or kind is not (Kind.CLAIM if self._moment is Then.CLAIMED else Kind.WORK):
            return
        self._dead = True
        if self._moment is not Then.WORKED:
            connection.engine.dialect.do_commit(connection.connection)
            if kind is Kind.WORK:
                self._director.note(who, "COMMIT")
        self._director.note(who, "dies")
        self._observer.end(backend_of(connection))
        connection.invalidate()
        raise WorkerDied
