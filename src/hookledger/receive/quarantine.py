"""Keeping refused requests, within bounds, so that they can be let in once the secret is mended.

Nobody has verified them, so anybody may send them: what is kept is bounded in size, rate, time and number, beside the
way of the answer, and dropped where the database is slow. A flood of refused requests costs a look at a counter each.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Engine, delete, func, insert, select
from sqlalchemy.util import greenlet_spawn

from hookledger.errors import BodyTooLarge, NotVerified, Refused, SetupError, UnsupportedEncoding
from hookledger.http import Request
from hookledger.ledger.schema import Tables, tables
from hookledger.storable import message as storable_message
from hookledger.storable import text as storable_text

logger = logging.getLogger(__name__)

KEPT = (NotVerified, BodyTooLarge, UnsupportedEncoding)
"""What may be somebody's mistake that can be mended."""
WINDOW = 60.0
SWEEP = 60.0
"""Seconds between two looks at what has expired and how much there is."""
MOST_WAITING = 200
MOST_WAITING_BYTES = 4 * 1024 * 1024
MOST_A_COMMIT = 50
EXPIRED_A_SWEEP = 1_000
LIMITS = (
    "SELECT pg_catalog.set_config('lock_timeout', '200ms', true),"
    " pg_catalog.set_config('statement_timeout', '1000ms', true)"
)
LONGEST_CLOSE = 1.0
"""Seconds that closing waits for what is still to be written."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """That refused requests are kept, and how many.

    Args:
        max_bytes: of a larger body only its size is kept, and the head of its request.
        per_minute: requests of a source that are kept in a minute; more are not.
        keep: how long they are kept.
        most: how many there may be altogether; when it is full, nothing is kept until some have expired.

    Raises:
        SetupError: for bounds that keep nothing.
    """

    max_bytes: int = 64 * 1024
    per_minute: int = 60
    keep: timedelta = timedelta(days=7)
    most: int = 10_000

    def __post_init__(self) -> None:
        if self.max_bytes < 0 or self.per_minute < 1 or self.most < 1 or self.keep <= timedelta(0):
            raise SetupError(
                "a quarantine needs max_bytes of 0 or more, per_minute and most of 1 or more, and a keep above 0"
            )


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused request, as it is kept."""

    request: Request
    status: int
    reason: str
    diagnosis: str
    size: int


def reason_of(error: Refused) -> str:
    """Why a request was refused, in one word."""
    if isinstance(error, NotVerified):
        return error.cause.value
    return "too-large" if isinstance(error, BodyTooLarge) else "unsupported-encoding"


class QuarantineWriter:
    """Writes refusals to the ledger, in one transaction at a time."""

    def __init__(
        self, engine: Engine, schema: str, settings: Quarantine, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine = engine.execution_options(isolation_level="READ COMMITTED")
        self._t: Tables = tables(schema)
        self._settings = settings
        self._clock = clock
        self._swept_at = float("-inf")
        self._room = 0
        self._told_at = float("-inf")

    def write(self, refusals: list[Refusal]) -> None:
        """Write them; what cannot be written now is dropped."""
        try:
            with self._engine.connect() as connection, connection.begin():
                connection.exec_driver_sql(LIMITS)
                if self._clock() - self._swept_at >= SWEEP:
                    self._sweep(connection)
                rows = [self._row(each) for each in refusals[: self._room]]
                if rows:
                    connection.execute(insert(self._t.quarantine), rows)
            self._room -= len(rows)
            if len(rows) < len(refusals):
                self._tell(f"the quarantine is full ({self._settings.most} requests)")
        except Exception as error:
            # The text of a database error may hold what was sent.
            self._tell(f"refused requests could not be kept ({type(error).__name__})")

    def _sweep(self, connection: Any) -> None:
        q = self._t.quarantine
        expired = select(q.c.id).where(q.c.at < func.now() - self._settings.keep).order_by(q.c.at)
        connection.execute(delete(q).where(q.c.id.in_(expired.limit(EXPIRED_A_SWEEP).scalar_subquery())))
        some = select(q.c.id).limit(self._settings.most).subquery()
        self._room = self._settings.most - connection.scalar(select(func.count()).select_from(some))
        self._swept_at = self._clock()

    def _row(self, refusal: Refusal) -> dict[str, Any]:
        request = refusal.request
        return {
            "source": request.source,
            "status": refusal.status,
            "reason": refusal.reason,
            "diagnosis": storable_message(refusal.diagnosis),
            "method": request.method,
            "url": storable_text(request.url),
            "headers": json.loads(request.headers.to_json()),
            "body": request.body,
            "size": refusal.size,
        }

    def _tell(self, what: str) -> None:
        if self._clock() - self._told_at >= WINDOW:
            self._told_at = self._clock()
            logger.warning("%s: they were refused all the same, and cannot be let in later", what)


class Keeper:
    """Takes refusals from the way of the answer, and has them written beside it.

    Args:
        writer: writes them.
        settings: how many.
        is_async: whether the writer's engine is asynchronous, so that it is a task of the event loop that writes.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        writer: QuarantineWriter,
        settings: Quarantine,
        *,
        is_async: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        """Of the receiver, where the engine is asynchronous."""
        self._writer = writer
        self._settings = settings
        self._is_async = is_async
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}
        self._waiting: deque[Refusal] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._writing = False
        self._done = threading.Event()
        self._done.set()
        self._tasks: set[asyncio.Task[None]] = set()

    def offer(self, request: Request, status: int, error: Refused, size: int | None = None) -> None:
        """Take a refusal, if there is room for it; never waits.

        Args:
            request: of a source that is known.
            status: of the answer.
            error: why.
            size: of the body, where the request is only its head.
        """
        if not isinstance(error, KEPT):
            return
        body = request.body if len(request.body) <= self._settings.max_bytes else b""
        with self._lock:
            if not self._admits(request.source) or len(self._waiting) >= MOST_WAITING:
                return
            if self._bytes + len(body) > MOST_WAITING_BYTES:
                return
            head = Request(request.source, request.method, request.headers, body, request.url, request.query)
            size = len(request.body) if size is None else size
            self._waiting.append(Refusal(head, status, reason_of(error), str(error), size))
            self._bytes += len(body)
            if self._writing:
                return
            self._writing = self._begin()

    def close(self) -> None:
        """Wait a moment for what is still to be written."""
        if not self._is_async:
            self._done.wait(LONGEST_CLOSE)

    async def aclose(self) -> None:
        """As `close`, from the event loop."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LONGEST_CLOSE)

    def _admits(self, source: str) -> bool:
        now = self._clock()
        began, count = self._windows.get(source, (now, 0))
        if now - began >= WINDOW:
            began, count = now, 0
        self._windows[source] = (began, count + 1)
        return count < self._settings.per_minute

    def _begin(self) -> bool:
        """Have somebody write; whether there is somebody."""
        if self._is_async:
            return self._begin_in_loop()
        self._done.clear()
        try:
            threading.Thread(target=self._write_all, name="hookledger-quarantine", daemon=True).start()
        except RuntimeError:
            self._done.set()
            return False
        return True

    def _begin_in_loop(self) -> bool:
        try:
            self.loop = asyncio.get_running_loop()
        except RuntimeError:
            # In a thread that verifies.
            if self.loop is None or self.loop.is_closed():
                return False
        try:
            self.loop.call_soon_threadsafe(self._spawn)
        except RuntimeError:
            return False
        return True

    def _spawn(self) -> None:
        task = asyncio.get_running_loop().create_task(self._write_in_loop())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write_in_loop(self) -> None:
        try:
            while refusals := self._take():
                await greenlet_spawn(self._writer.write, refusals)
        except BaseException:
            self._writing = False
            raise

    def _write_all(self) -> None:
        try:
            while refusals := self._take():
                self._writer.write(refusals)
        finally:
            self._done.set()

    def _take(self) -> list[Refusal]:
        with self._lock:
            taken = [self._waiting.popleft() for _ in range(min(MOST_A_COMMIT, len(self._waiting)))]
            self._bytes -= sum([len(each.request.body) for each in taken])
            if not taken:
                self._writing = False
            return taken


def sized(error: Refused, request: Request) -> int | None:
    """The size of a body that was not read to its end, if the request says it."""
    declared = request.headers.get("content-length", "") or ""
    if isinstance(error, BodyTooLarge) and not request.body and declared.isdigit() and len(declared) < 19:
        return int(declared)
    return None
