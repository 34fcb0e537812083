"""The import: verify, read and let in, a batch at a time, so that memory stays flat however long the file is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import DBAPIError

from hookledger.errors import HookledgerError, Refused, SetupError, Unavailable
from hookledger.http import Response
from hookledger.inbox import Inbox
from hookledger.operate.door import Earlier, accept_earlier, let_in
from hookledger.operate.importing.captured import Bad, Captured
from hookledger.receive.accept import Accepted
from hookledger.receive.announce import announce

BATCH = 200
BATCH_BYTES = 8 * 1024 * 1024
SLACK = timedelta(minutes=5)
"""How far a capture's clock may be ahead of the database's."""


@dataclass(slots=True)
class Imported:
    """What became of the captured requests.

    Args:
        read: how many there were.
        recorded: deliveries that are new.
        known: events that the ledger had already, of which nothing changed.
        differing: those of the known that it has with other bytes.
        empty: requests that carry no event, such as handshakes.
        bad: lines that are no captured requests, and requests that do not verify; they were left out.
    """

    read: int = 0
    recorded: int = 0
    known: int = 0
    differing: int = 0
    empty: int = 0
    bad: int = 0


Progress = Callable[[Imported], None]
Complain = Callable[[int, str], None]


def import_requests(
    engine: Engine,
    inbox: Inbox,
    requests: Iterable[Captured | Bad],
    *,
    origin: str,
    dry_run: bool = False,
    complain: Complain = lambda number, reason: None,
    progress: Progress = lambda imported: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Imported:
    """Let in captured requests, each with the time at which it came. What is known stays as it is, so that importing
    the same file again, or the rest after an interruption, changes nothing that is there.

    Args:
        engine: of the database with the ledger.
        inbox: the sources with their present and previous secrets. How old a signature is does not matter.
        requests: from `read_lines` or `read_har`.
        origin: what they are marked with, e.g. the name of the file.
        dry_run: verify and look up only.
        complain: is told of each line that is left out, by its number.
        progress: is told after each batch.
        stopping: asked after each batch whether to end.

    Raises:
        Unavailable: if a provider's keys cannot be had; what was imported stands.
    """
    imported = Imported()
    for batch in _batches(requests):
        accepted = list(chain.from_iterable([_accepted(inbox, each, imported, complain, origin) for each in batch]))
        with engine.connect() as connection, connection.begin() as transaction:
            latest = connection.execute(select(func.now())).scalar_one()
            fit = [each for each in accepted if _has_been(each, latest, imported, complain)]
            lets = let_in(connection, inbox.schema, [each.earlier for each in fit])
            if dry_run:
                transaction.rollback()
        for let in lets:
            imported.recorded += len(let.new)
            imported.known += len(let.known)
            imported.differing += len(let.differing)
        progress(imported)
        if stopping():
            break
    if imported.recorded and not dry_run:
        # A hint only: workers find it by polling as well.
        with suppress(DBAPIError), engine.begin() as connection:
            announce(connection, inbox.schema)
    return imported


@dataclass(frozen=True, slots=True)
class _Numbered:
    number: int
    earlier: Earlier


def _accepted(
    inbox: Inbox, captured: Captured | Bad, imported: Imported, complain: Complain, origin: str
) -> Iterator[_Numbered]:
    imported.read += 1
    if isinstance(captured, Bad):
        imported.bad += 1
        complain(captured.number, captured.reason)
        return
    try:
        found = _verified(inbox, captured)
    except Unavailable:
        raise
    except HookledgerError as error:
        imported.bad += 1
        complain(captured.number, str(error))
        return
    if isinstance(found, Response) or not found.events:
        imported.empty += 1
        return
    yield _Numbered(captured.number, Earlier(found, captured.received_at, origin))


def _verified(inbox: Inbox, captured: Captured) -> Accepted | Response:
    request = captured.request
    source = inbox.source(request.source)
    if request.method != "POST":
        raise SetupError(f"it is a {request.method[:20]} request, and events come by POST")
    try:
        return accept_earlier(source, request, captured.received_at, any_age=True)
    except HookledgerError:
        raise
    except Exception as error:
        # A verifier of the user's own that breaks has not verified.
        raise Refused(f"verifying it failed with {type(error).__name__}") from error


def _has_been(each: _Numbered, now: datetime, imported: Imported, complain: Complain) -> bool:
    if each.earlier.received_at <= now + SLACK:
        return True
    imported.bad += 1
    complain(each.number, f"its time {each.earlier.received_at.astimezone(UTC).isoformat()} is still to come")
    return False


def _batches(requests: Iterable[Captured | Bad]) -> Iterator[list[Captured | Bad]]:
    batch: list[Captured | Bad] = []
    size = 0
    for each in requests:
        batch.append(each)
        size += len(each.request.body) if isinstance(each, Captured) else 0
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
