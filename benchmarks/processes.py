"""Child processes: forked ones that are timed, and programs of this package. None outlives the benchmark.

Imports nothing but the standard library, for `drain.with_oban` runs under a Python of its own.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Failed

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 3600.0
"""Seconds after which a program is given up."""
PR_SET_PDEATHSIG = 1
"""https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html"""


def end_with_parent(parent: int) -> None:
    """Have this process killed when its parent ends, however that ends.

    Args:
        parent: the process id of the parent; if it is another one by now, that parent is gone already.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def allow_many_descriptors() -> int:
    """Raise the limit of open files to what this process may have. Returns that."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


class Workers:
    """Forked worker processes. Forked, so that no contender pays for its imports in the timed part.

    Args:
        work: what each of them runs.
        count: how many there are.
        arguments: of `work`.
    """

    def __init__(self, work: Callable[..., None], count: int, *arguments: Any) -> None:
        context = multiprocessing.get_context("fork")
        self._processes = [
            context.Process(target=_attached, args=(os.getpid(), work, *arguments)) for _ in range(count)
        ]

    def start(self) -> None:
        """Start all of them."""
        for process in self._processes:
            process.start()

    def stop(self) -> None:
        """SIGTERM to all of them."""
        for process in self._processes:
            process.terminate()

    def end(self) -> None:
        """Stop all of them, and wait for that."""
        self.check()
        self.stop()
        for process in self._processes:
            process.join()

    def join(self) -> None:
        """Wait for their end.

        Raises:
            Failed: one of them failed.
        """
        for process in self._processes:
            process.join()
        codes = [process.exitcode for process in self._processes]
        if any(code != 0 for code in codes):
            raise Failed(f"worker processes ended with {codes}; see above for what they said")

    def check(self) -> None:
        """See that none has failed so far.

        Raises:
            Failed: one has.
        """
        if any(process.exitcode not in (None, 0) for process in self._processes):
            self.stop()
            self.join()


def timed(work: Callable[..., None], count: int, *arguments: Any) -> float:
    """The seconds from the start of the processes to the end of the last one."""
    workers = Workers(work, count, *arguments)
    start = time.perf_counter()
    workers.start()
    workers.join()
    return time.perf_counter() - start


def run_program(module: str, arguments: Sequence[str], *, given: str = "", python: str = sys.executable) -> Any:
    """Run a module of this package as a program, and return the JSON document that it prints.

    Args:
        module: its name.
        arguments: of its command line.
        given: what it reads from stdin.
        python: the interpreter.

    Raises:
        Failed: it failed; what it said is on stderr.
    """
    done = subprocess.run(
        [python, "-m", module, *arguments],
        cwd=ROOT,
        input=given,
        stdout=subprocess.PIPE,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    if done.returncode:
        raise Failed(f"{module} {arguments[0] if arguments else ''} ended with status {done.returncode}")
    return json.loads(done.stdout)


def _attached(parent: int, work: Callable[..., None], *arguments: Any) -> None:
    end_with_parent(parent)
    work(*arguments)
