"""Listening for the hint that something came. Polling is the base: a lost hint costs one interval of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import sql

from hookledger.receive.announce import channel

logger = logging.getLogger(__name__)

PROBE_AFTER = 20.0
"""Seconds of silence after which the connection is probed: a network that swallows packets closes nothing."""
PROBE_WITHIN = 5.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 30.0


class Listener:
    """Keeps a LISTEN connection, and makes it again when it is lost.

    Args:
        schema: of the ledger.
        came: called in the event loop for each hint, and when the connection was made again.
    """

    def __init__(self, schema: str, came: Callable[[], None]) -> None:
        self._channel = channel(schema)
        self._came = came
        self.listening = asyncio.Event()

    async def run(self, parameters: Callable[[], dict[str, Any]]) -> None:
        """Listen until cancelled.

        Args:
            parameters: gives libpq's, of the last connection that worked: a password may change.
        """
        pause = SHORTEST_PAUSE
        while True:
            try:
                async with asyncio.timeout(PROBE_WITHIN):
                    connection = await psycopg.AsyncConnection.connect(**parameters(), autocommit=True)
            except (psycopg.Error, OSError, TimeoutError) as error:
                logger.info("cannot listen for hints, polling goes on: %s", error or type(error).__name__)
            else:
                try:
                    async with asyncio.timeout(PROBE_WITHIN):
                        await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
                    pause = SHORTEST_PAUSE
                    self.listening.set()
                    self._came()
                    await self._hear(connection)
                except (psycopg.Error, OSError, TimeoutError) as error:
                    logger.warning(
                        "the connection for hints was lost, polling goes on: %s", str(error).strip() or "silence"
                    )
                finally:
                    self.listening.clear()
                    await _close(connection)
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)

    async def _hear(self, connection: psycopg.AsyncConnection[Any]) -> None:
        while True:
            if await _readable(connection.fileno(), PROBE_AFTER):
                async for _ in connection.notifies(timeout=PROBE_WITHIN, stop_after=1):
                    self._came()
            else:
                async with asyncio.timeout(PROBE_WITHIN):
                    await connection.execute("SELECT 1")
                # What came together with the answer is not on the socket any more.
                self._came()


async def _readable(descriptor: int, seconds: float) -> bool:
    """Wait until there is something to read. The driver's own wait wakes up ten times a second, which took more of an
    idle worker's time than all the rest.

    Returns:
        Whether there was, within so many seconds.
    """
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        async with asyncio.timeout(seconds):
            await readable.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)
    return True


async def _close(connection: psycopg.AsyncConnection[Any]) -> None:
    # Not awaited for long: on a dead network even closing may hang.
    try:
        async with asyncio.timeout(1):
            await connection.close()
    except (psycopg.Error, OSError, TimeoutError):
        pass


def parameters_of(driver_connection: Any) -> dict[str, Any]:
    """libpq's parameters of an open connection, however it was made, with its password."""
    info = driver_connection.info
    parameters = dict(info.get_parameters())
    if info.password:
        parameters["password"] = info.password
    return parameters
