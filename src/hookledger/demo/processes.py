"""The child processes of the demo: the receiver and the workers. None of them outlives the demo."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from types import TracebackType
from typing import Self

from hookledger.demo.failure import DemoFailed
from hookledger.demo.framework import HOST, PREFIX, Framework

START_SECONDS = 60.0
LOOK_EVERY_SECONDS = 0.02
PORTS_TRIED = 5
FIRST_PORT, PORTS = 15_000, 15_000
TELLS_CAUSE = re.compile(r"error: |[\w.]+(Error|Exception): ")


class Child:
    """One child process, in a session of its own, so that Ctrl-C in the terminal reaches only the demo.

    Args:
        name: what it is, for messages.
        arguments: of `hookledger.demo.child`.
        database_url: the embedded server's.
    """

    def __init__(self, name: str, arguments: list[str], database_url: str) -> None:
        self.name = name
        # A file without a name: nothing is left of it, whatever happens to us.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", "-m", "hookledger.demo.child", str(os.getpid()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            cwd="/",
            env=_environment(database_url),
            start_new_session=True,
        )

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """SIGKILL it, and what it has forked."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()

    def fault(self) -> DemoFailed:
        """The error to raise if it has ended by itself, or does not come up."""
        size = os.fstat(self._output.fileno()).st_size
        told = os.pread(self._output.fileno(), size, 0).decode(errors="replace").split("\n")
        lines = [line.strip() for line in told if line.strip()] or ["nothing"]
        # gunicorn's last words are not the cause.
        last = next((line for line in reversed(lines) if TELLS_CAUSE.match(line)), lines[-1])
        status = self._process.poll()
        how = "did not come up" if status is None else f"ended with status {status}"
        return DemoFailed(f"{self.name} {how}; it said last: {last}")


class Children:
    """The receiver and the workers.

    Args:
        framework: what the receiver is made with.
        database_url: the embedded server's.
    """

    def __init__(self, framework: Framework, database_url: str) -> None:
        self._framework = framework
        self._database_url = database_url
        self._receiver: Child | None = None
        self._workers: list[Child] = []
        self._started = 0
        self.port = 0

    async def start_receiver(self) -> None:
        """Start the receiver on a free port, and wait until it answers.

        Raises:
            DemoFailed: it does not come up.
        """
        for tries_left in reversed(range(PORTS_TRIED)):
            self.port = _free_port()
            receiver = self._receiver = self._receive()
            deadline = time.monotonic() + START_SECONDS
            while not receiver.ended and time.monotonic() < deadline:
                if await _answers(self.port):
                    return
                await asyncio.sleep(LOOK_EVERY_SECONDS)
            fault = receiver.fault()
            receiver.kill()
            self._receiver = None
            if not tries_left or "in use" not in str(fault).lower():
                raise fault

    def start_worker(self) -> None:
        """Start one worker more; it takes up work when it is ready."""
        self._started += 1
        # All batches are about the same few hundred resources, so more slots would wait for one another.
        arguments = ["worker", "hookledger.demo.hooks:inbox", "--slots", "1", "--log-level", "warning"]
        self._workers.append(Child(f"worker {self._started}", arguments, self._database_url))

    def kill_worker(self) -> None:
        """SIGKILL to the worker that has been at work longest, and start another in its place."""
        self._workers.pop(0).kill()
        self.start_worker()

    def restart_receiver(self) -> None:
        """SIGKILL to the receiver, and start it again on the same port; it answers when it is ready."""
        assert self._receiver is not None
        self._receiver.kill()
        self._receiver = self._receive()

    def check(self) -> None:
        """See that all of them run.

        Raises:
            DemoFailed: one of them has ended by itself, with what it said last.
        """
        for child in (self._receiver, *self._workers):
            if child is not None and child.ended:
                raise child.fault()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for child in (self._receiver, *self._workers):
            if child is not None:
                child.kill()

    def _receive(self) -> Child:
        return Child("the receiver", ["receive", self._framework.value, str(self.port)], self._database_url)


def _environment(database_url: str) -> dict[str, str]:
    environment = {**os.environ, "DATABASE_URL": database_url}
    if "PYTHONPATH" in environment:
        # The child runs in another folder.
        folders = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join([os.path.abspath(folder) for folder in folders])
    return environment


async def _answers(port: int) -> bool:
    try:
        async with asyncio.timeout(1):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                writer.write(f"GET {PREFIX}/stripe HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
                return (await reader.readline()).startswith(b"HTTP/1.1 200")
            finally:
                writer.close()
    except OSError:
        return False


def _free_port() -> int:
    """A port that nobody listens on, below those that the kernel hands out: no outgoing connection takes it while
    the receiver is down."""
    while True:
        port = FIRST_PORT + secrets.randbelow(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port
