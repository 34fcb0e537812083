"""The demo's sender: signs events, posts them over several connections at once, and tries again what was not
acknowledged, as providers do.

The client is a few lines of HTTP/1.1 of our own: on two cores that the server and the workers need as well, a
general one would be the slowest part of the demo.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

from hookledger.demo.failure import DemoFailed
from hookledger.demo.traffic import Event

ANSWER_SECONDS = 15.0
"""How long an answer may take; a provider hangs up as well."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
GIVE_UP_SECONDS = 60.0
LARGEST_ANSWER = 64 * 1024


class Connection:
    """One kept-alive connection to the receiver, made anew when it is lost."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Connect, if it is not connected.

        Raises:
            OSError: nobody listens there.
        """
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=LARGEST_ANSWER)

    async def post(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """The status of the answer to one request, on a connection that is open.

        Raises:
            OSError, EOFError: the connection was lost.
            ValueError: what came back is no answer of HTTP.
        """
        reader, writer = self._reader, self._writer
        assert reader is not None
        assert writer is not None
        lines = [f"POST {path} HTTP/1.1", f"Host: {self._host}:{self._port}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}", "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
            fields = dict(line.split(": ", 1) for line in head[1:-2])
            await reader.readexactly(int(fields["content-length"]))
            status = int(head[0].split(" ")[1])
        except (LookupError, asyncio.LimitOverrunError) as error:
            raise ValueError("no answer of HTTP") from error
        if fields.get("connection") == "close":
            self.close()
        return status

    def close(self) -> None:
        """Let go of it."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


class Sender:
    """Sends events in an order, each until it is acknowledged.

    Args:
        host, port: of the receiver.
        order: the events, a copy being the same event once more.
        connections: how many are used at once.
        on_acknowledged: called after each 2xx with their number so far.
    """

    def __init__(
        self,
        host: str,
        port: int,
        order: Iterable[Event],
        *,
        connections: int,
        on_acknowledged: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._address = (host, port)
        self._order = iter(order)
        self._connections = connections
        self._on_acknowledged = on_acknowledged
        self._random = Random(0)  # noqa: S311 - spreads retries
        self.tries = 0
        """Requests that were written to a connection."""
        self.accepted = 0
        """Requests that were answered 2xx."""
        self.acknowledged: set[tuple[str, str]] = set()
        """Source and event id of what was answered 2xx."""
        self.unanswered = 0
        """Requests on whose way the connection was lost."""
        self.refused: Counter[int] = Counter()
        """Answers other than 2xx, by status."""

    async def run(self) -> None:
        """Send all of it.

        Raises:
            DemoFailed: something was not taken for a minute.
        """
        senders = [asyncio.create_task(self._send_on_one_connection()) for _ in range(self._connections)]
        try:
            await asyncio.gather(*senders)
        finally:
            for sender in senders:
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)

    async def _send_on_one_connection(self) -> None:
        connection = Connection(*self._address)
        try:
            # All connections take from the same iterator, so each takes the next that nobody has.
            for event in self._order:
                await self._send(connection, event)
        finally:
            connection.close()

    async def _send(self, connection: Connection, event: Event) -> None:
        path, body = f"/webhooks/{event.kind.source}", event.body()
        pause, begun, said = FIRST_PAUSE, time.monotonic(), "nothing"
        while True:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await connection.open()
                    # Stripe signs the time, so a copy and a retry are signed anew.
                    headers = event.headers(body, time.time())
                    self.tries += 1
                    status = await connection.post(path, headers, body)
            except (OSError, EOFError, ValueError) as error:
                connection.close()
                self.unanswered += 1
                said = type(error).__name__
            else:
                if 200 <= status < 300:
                    self.accepted += 1
                    self.acknowledged.add(event.key)
                    self._on_acknowledged(self.accepted)
                    return
                self.refused[status] += 1
                said = str(status)
            if time.monotonic() - begun > GIVE_UP_SECONDS:
                raise DemoFailed(
                    f"the receiver did not take {event.event_type} within {GIVE_UP_SECONDS:g} s; last answer: {said}"
                )
            await asyncio.sleep(pause * (0.5 + self._random.random()))
            pause = min(LONGEST_PAUSE, pause * 2)
