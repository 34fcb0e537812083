"""A long-running command as a process: signals, and an end that nothing can hold up."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, Protocol

from hookledger.cli.errors import FAILED

LEAVE_SECONDS = 2.0
"""How long threads that have nothing to do any more may take to end."""

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def freeze_what_is_loaded() -> None:
    """Leave what is there by now, such as modules, out of the garbage collector's rounds: it stays as long as the
    process, and looking through all of it again and again took a tenth of a worker's time.
    https://docs.python.org/3/library/gc.html#gc.freeze
    """
    gc.collect()
    gc.freeze()


class Stoppable(Protocol):
    """What is told to stop by a signal."""

    def stop(self, *, now: bool = False) -> None:
        """Stop; from any thread, and from a signal handler."""


class Stopping:
    """The first SIGTERM or SIGINT stops the work, a second one gives up the grace time, a third one the rest.

    Signal handlers of Python, not of the event loop: they run even while a handler blocks the loop.
    """

    def __init__(self, work: Stoppable) -> None:
        self._work = work
        self.signals = 0

    def install(self) -> None:
        """Take over the signals of the process."""
        for number in SIGNALS:
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: object) -> None:
        self.signals += 1
        if self.signals == 1:
            _tell(f"stopping on {signal.Signals(number).name}; once more to give up what is running")
        elif self.signals == 2:
            _tell("stopping at once; a third time ends the process whatever it does")
        else:
            end_at_once("ended at once; deliveries in work will be tried again")
        self._work.stop(now=self.signals > 1)


def _tell(text: str) -> None:
    # Not through sys.stderr: a signal handler may have interrupted a write to it, which cannot be entered again.
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode())


def run_to_end(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine in a loop of its own.

    `asyncio.run` would afterwards wait for every thread, however long a handler may be stuck in one.
    """
    import asyncio

    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        executor = getattr(loop, "_default_executor", None)
        if executor is not None:
            executor.shutdown(wait=False)
        asyncio.set_event_loop(None)
        loop.close()


def leave(*, stuck: bool) -> None:
    """Return if the process can end by itself; end it here if something would hold it up.

    At exit Python waits for every thread that is not a daemon, and a blocking handler cannot be interrupted.

    Args:
        stuck: whether a handler did not end in time.
    """
    deadline = time.monotonic() + LEAVE_SECONDS
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    busy = [thread.name for thread in others if thread.is_alive()]
    if stuck:
        end_at_once("a handler did not end in time and was given up; its delivery will be tried again")
    if busy:
        end_at_once(f"threads that did not end were given up: {', '.join(busy)}")


def end_at_once(reason: str) -> NoReturn:
    """End the process without waiting for anything."""
    _tell(f"error: {reason}")
    logging.shutdown()
    sys.stdout.flush()
    os._exit(FAILED)
