"""A deployment: a receiver and workers in processes of their own, senders, and the books of what they did."""

from __future__ import annotations

import http.client
import itertools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy.exc import DBAPIError

from tests.concurrency.senders import Senders
from tests.faults.books import SOURCE, TABLES, Books, Event, Journal, read_books
from tests.faults.forking import PREFIX, Wanted
from tests.outcomes import Ledger, shop
from tests.processes import Child, wait_until

RESOURCES = 7
PACE = 0.01
"""Seconds between two events of a sender: the deliveries shall flow, and not pile up."""
ANSWERED_WITHIN = 10.0
"""Seconds; a receiver that does not answer has failed."""

SETTLED_WITHIN = 90.0
"""Seconds that the workers get for the rest once the fault is over."""


class Process:
    """A receiver or a worker.

    Args:
        wanted: what it was started as.
        pid: its process id.
        port: that it serves; 0 for a worker.
    """

    def __init__(self, wanted: Wanted, pid: int, port: int) -> None:
        self.wanted = wanted
        self.pid = pid
        self.port = port
        self.killed = False

    @property
    def running(self) -> bool:
        try:
            return bool(psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    @property
    def output(self) -> str:
        """What it has printed until now."""
        path = Path(self.wanted.log)
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.killed = True
        os.kill(self.pid, signal.SIGKILL)
        wait_until(lambda: not self.running)

    def wait_for_output(self, words: str) -> None:
        """Return as soon as it has printed them."""

        def printed() -> bool:
            assert words in self.output or self.running, self.output
            return words in self.output

        wait_until(printed)


class Forking:
    """The program that forks processes.

    Args:
        folder: for their output.
        root: the project's folder.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self._child = Child("-m", "tests.faults.forking", cwd=root)

    def start(self, role: str, url: str, **wanted: Any) -> Process:
        """Start a process.

        Args:
            role, url, wanted: those of `Wanted`.
        """
        number = next(self._numbers)
        log = self._folder / f"{role}-{number}"
        asked = Wanted(role, url, log=str(log), **{"inbox": "sync", **wanted})
        self._child.send(asked.line)
        lines = wait_until(lambda: self._lines(number)) or []
        _, pid, port = lines[number].split()
        return Process(asked, int(pid), int(port))

    def _lines(self, number: int) -> list[str] | None:
        assert self._child.running, self._child.output
        lines = self._child.output.split("\n")[:-1]
        return lines if len(lines) > number else None

    def close(self) -> None:
        """End all of them."""
        self._child.close()


class Deployment:
    """What receives and works on one ledger.

    Args:
        forking: starts its processes.
        owner_url: of the database, for looking, as a role that may do all.
        url: of the database as the processes get it; None: the same.
        inbox: the name of one in `hooks`.
    """

    def __init__(self, forking: Forking, owner_url: str, url: str | None = None, *, inbox: str = "sync") -> None:
        self.ledger = Ledger(owner_url)
        self.journal = Journal()
        self.processes: list[Process] = []
        self._owner_url = owner_url
        self._url = url or owner_url
        self._inbox = inbox
        self._forking = forking
        for table in TABLES:
            self.ledger.execute(table)

    def use(self, url: str) -> None:
        """Give processes that are started from now on this URL of the database."""
        self._url = url

    def start_receiver(self, url: str | None = None, **wanted: Any) -> Process:
        """Start a receiver, to which the senders send from now on."""
        self.receiver = self._start("receiver", url, **wanted)
        return self.receiver

    def start_worker(self, url: str | None = None, *, wait: bool = True, **wanted: Any) -> Process:
        """Start a worker, and wait until it is ready."""
        options = {"options": ["--slots", "2", "--batch", "20"], **wanted}
        worker = self._start("worker", url, **options)
        if wait:
            worker.wait_for_output("worker ready")
        return worker

    def _start(self, role: str, url: str | None, **wanted: Any) -> Process:
        process = self._forking.start(role, url or self._url, **{"inbox": self._inbox, **wanted})
        self.processes.append(process)
        return process

    def start(self, workers: int = 2, *, direct: bool = True) -> None:
        """Start the receiver and so many workers.

        Args:
            workers: how many.
            direct: whether their connections can be told apart in the server, as those of a pooler cannot; then wait
                until they are past their start: a worker that finds no server in it says so and ends.
        """
        self.start_receiver()
        started = [self.start_worker(wait=False) for _ in range(workers)]
        for worker in started:
            worker.wait_for_output("worker ready")
        if direct:
            wait_until(lambda: self.listeners() == workers)

    def post(self, event: Event) -> int:
        """Send an event, and note it; the status of the answer."""
        self.journal.send(event)
        sign = shop().sign
        assert sign is not None
        connection = http.client.HTTPConnection("127.0.0.1", self.receiver.port, timeout=ANSWERED_WITHIN)
        try:
            headers = dict(sign(event.body, time.time()))
            connection.request("POST", f"{PREFIX}/{SOURCE}", event.body, headers)
            status = connection.getresponse().status
        finally:
            connection.close()
        if status == 200:
            self.journal.acknowledge(event)
        return status

    @contextmanager
    def sending(self, name: str = "e", threads: int = 3) -> Iterator[Senders]:
        """Senders that send until the end of the block: each event until it is acknowledged, every fifth once more, and
        the versions of a resource in no order."""

        def send(_: bytes, event_id: str) -> int:
            time.sleep(PACE)
            number = int(event_id.rpartition("-")[2])
            event = Event(event_id, f"r{number % RESOURCES}", number + number * 7 % 11)
            status = self.post(event)
            if status == 200 and number % 5 == 0:
                self.post(event)
            return status

        with Senders(send, threads=threads, name=name) as senders:
            yield senders
        assert senders.statuses <= {200, 503}, senders.statuses

    def send(self, *events: Event) -> None:
        """Send events until they are acknowledged."""
        for event in events:
            wait_until(lambda event=event: self.post(event) == 200)  # type: ignore[misc]

    def settled(self) -> int:
        """How many outcomes there are; 0 while the database is away."""
        try:
            return int(self.ledger.value("SELECT count(*) FROM hookledger.effects"))
        except DBAPIError:
            return 0

    def wait_for_progress(self, more: int = 1) -> None:
        """Return when there are so many more outcomes."""
        before = self.settled()

        def progressed() -> bool:
            self.expect_running()
            return self.settled() >= before + more

        wait_until(progressed)

    def listeners(self) -> int:
        """How many workers are past their start, and hear of what comes."""
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"
        return int(self.ledger.value(query))

    def expect_running(self) -> None:
        """See that every process runs that was not killed."""
        for process in self.processes:
            assert process.running or process.killed, process.output

    def expect_balanced(self, *, charged: bool = False) -> Books:
        """Wait until nothing is pending, and see that the books balance, that nobody was given up or charged, and that
        every process still runs that was not killed. Nothing is done about it but to wait.

        Args:
            charged: whether a handler may have failed, and succeeded later.
        """
        wait_until(lambda: not self.ledger.pending(), SETTLED_WITHIN)
        books = read_books(self._owner_url, self.journal)
        assert books.balanced, str(books)
        assert books.dead == {}, (books.dead, [process.output for process in self.processes])
        assert charged or self.ledger.failures() == [], self.ledger.failures()
        assert books.acknowledged > 0
        self.expect_running()
        for process in self.processes:
            assert "Traceback" not in process.output, process.output
        return books

    def close(self) -> None:
        """Kill the processes."""
        for process in self.processes:
            if process.running:
                os.kill(process.pid, signal.SIGCONT)
                process.kill()
        self.ledger.engine.dispose()
