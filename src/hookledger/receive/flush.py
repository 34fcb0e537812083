"""One shared commit: everything that gathered in the line, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from hookledger.errors import Unavailable
from hookledger.ledger.failure import is_conflict, is_outage
from hookledger.ledger.repository import Copy, NewEvent, NewRequest, Repeated, Repository
from hookledger.receive.line import Entry, Outcome

logger = logging.getLogger(__name__)

TRIES = 4
"""How often a commit is tried again after a deadlock or on a connection that turned out dead."""

Connect = Callable[[], AbstractContextManager[Connection]]


def flush(connect: Connect, repository: Repository, entries: Sequence[Entry]) -> list[Outcome | Exception]:
    """Commit the entries; if one of them spoils the transaction, each alone.

    Args:
        connect: opens a connection.
        repository: the ledger.
        entries: in the order of their arrival.

    Returns:
        An outcome or an error for each entry, in their order.
    """
    try:
        return list(_commit(connect, repository, entries))
    except (SQLAlchemyError, OSError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if is_outage(error) or len(entries) == 1:
            logger.warning("%d requests could not be committed: %s", len(entries), cause)
            return [Unavailable("the database did not commit the event")] * len(entries)
        logger.warning("a shared commit of %d requests failed, each goes alone: %s", len(entries), cause)
    outcomes: list[Outcome | Exception] = []
    for entry in entries:
        outcomes += flush(connect, repository, [entry])
    return outcomes


def _commit(connect: Connect, repository: Repository, entries: Sequence[Entry]) -> list[Outcome]:
    for left in reversed(range(TRIES)):
        try:
            with connect() as connection, connection.begin():
                outcomes, repeated = record(connection, repository, entries)
        except DBAPIError as error:
            if left and (is_conflict(error) or error.connection_invalidated):
                continue
            raise
        for copy in repeated:
            _tell(copy)
        return outcomes
    raise AssertionError("unreachable")


def record(
    connection: Connection, repository: Repository, entries: Sequence[Entry]
) -> tuple[list[Outcome], list[Repeated]]:
    """Write the entries within an open transaction.

    Returns:
        Whether each was new or repeated, and what became of the copies.
    """
    requests: list[NewRequest] = []
    events: list[NewEvent] = []
    owners: list[int] = []
    for index, entry in enumerate(entries):
        accepted = entry.accepted
        requests.append(NewRequest(accepted.headers, accepted.body))
        for event in accepted.events:
            events.append(event if index == 0 else event._replace(request=index + 1))
            owners.append(index)
    new = repository.record(connection, requests, events) if events else {}
    if len(new) == len(events):
        return ["recorded"] * len(entries), []
    copies: list[Copy] = []
    outcomes: list[Outcome] = ["repeated"] * len(entries)
    for index, event in enumerate(events):
        accepted = entries[owners[index]].accepted
        if index in new:
            outcomes[owners[index]] = "recorded"
        else:
            copies.append(Copy(event.source, event.event_id, event.digest, accepted.headers, accepted.body))
    return outcomes, repository.record_again(connection, copies)


def _tell(copy: Repeated) -> None:
    level, how = logging.DEBUG, ""
    if copy.differs:
        level, how = logging.WARNING, " with another body, which is kept apart and not run"
    elif copy.revived:
        level, how = logging.INFO, " and is tried again, having been a dead letter"
    extra = {"delivery_id": copy.delivery_id, "differs": copy.differs, "revived": copy.revived}
    logger.log(level, "delivery %d came again%s", copy.delivery_id, how, extra=extra)
