"""Child processes of tests, and waiting for a state."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import psutil

Value = TypeVar("Value")

DEADLINE_SECONDS = 60.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.1
PAUSE = 0.1
"""Between two looks, as a share of what was waited already: many a look takes a connection of its own, and what is
waited for needs the processor."""


def wait_until(condition: Callable[[], Value], deadline_seconds: float = DEADLINE_SECONDS) -> Value:
    """The first true value that the condition gives.

    Raises:
        AssertionError: there was none within the deadline.
    """
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        if waited > deadline_seconds:
            raise AssertionError(f"not within {deadline_seconds} s: {condition}; last: {value!r}")
        time.sleep(min(LONGEST_PAUSE, max(SHORTEST_PAUSE, waited * PAUSE)))


class Child:
    """A program run beside the test, in a session of its own. What it prints is kept in a file, so it never blocks
    on a full pipe; at the end it and its process group are killed.

    Args:
        command: the program and its arguments; one that ends in `.py` or begins with `-` is run by this Python.
        env: variables set in addition to ours.
        cwd: where it is run; None: here.
        options: more arguments for subprocess.Popen.
    """

    def __init__(
        self,
        *command: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        **options: Any,
    ) -> None:
        self.command: Sequence[str] = [str(part) for part in command]
        if self.command[0].startswith("-") or self.command[0].endswith(".py"):
            self.command = [sys.executable, *self.command]
        self._output = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed by close()
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            cwd=cwd,
            start_new_session=True,
            **options,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def output(self) -> str:
        """What it has printed until now, errors included."""
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode(errors="replace")

    def wait_for_output(self, text: str, deadline_seconds: float = DEADLINE_SECONDS) -> str:
        """The line with this text, as soon as it is printed whole."""

        def line() -> str | None:
            ended = not self.running
            complete, _, _ = self.output.rpartition("\n")
            found = next((line for line in complete.split("\n") if text in line), None)
            if found is None and ended:
                raise AssertionError(f"{self.command} ended with {self.process.returncode}: {self.output}")
            return found

        try:
            return wait_until(line, deadline_seconds) or ""
        except AssertionError as error:
            raise AssertionError(f"no {text!r} in the output of {self.command}: {self.output}") from error

    def send(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, and not to its children."""
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """Ctrl-C, as in a terminal: SIGINT to it and its process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL to the process alone, its children live on; and wait for its end."""
        self.process.kill()
        self.process.wait()

    def wait(self, deadline_seconds: float = DEADLINE_SECONDS) -> int:
        """Its exit code once it ends; that of a signal is negative."""
        try:
            return self.process.wait(deadline_seconds)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{self.command} did not end in {deadline_seconds} s: {self.output}") from error

    def close(self) -> None:
        """Kill what is left of it and of its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        self._output.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def family(pids: list[int]) -> list[psutil.Process]:
    """The processes with their descendants."""
    processes = [psutil.Process(pid) for pid in pids]
    return [*processes, *(child for process in processes for child in process.children(recursive=True))]


def ended(process: psutil.Process) -> bool:
    """Whether it has ended, be it that nobody has asked for its exit code yet."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def all_ended(processes: list[psutil.Process]) -> bool:
    """Whether all of them have ended."""
    return all(ended(process) for process in processes)
