"""Stops the embedded server when the process that started it is gone, even after `kill -9`.

Run as a program of its own, in a session of its own: a signal from the terminal does not reach it. It holds the
lock on the data folder as long as it lives, so nobody else starts a server there until it has cleaned up.
Every process of the server inherits a shared lock on another file; once that can be locked exclusively, the last
of them has ended, whoever their parents were.

Only modules of the standard library are imported, since it runs with `python -I -S`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

LOOK_AT_PARENT_SECONDS = 0.25
FAST_SHUTDOWN_SECONDS = 0.5
IMMEDIATE_SHUTDOWN_SECONDS = 8.0
GIVE_UP_SECONDS = 60.0

READY = "ready"
IN_USE = "in use"


@dataclass(frozen=True)
class Watch:
    """What a guard looks after."""

    parent: int
    cluster: str
    folder_lock: str
    server_lock: str
    remove: list[str]
    keeps_data: bool

    @property
    def command(self) -> list[str]:
        """The command line of the guard."""
        return [sys.executable, "-I", "-S", __file__, json.dumps(asdict(self))]


def running_postmaster(cluster: Path) -> int | None:
    """The process id of the server that was started for this cluster, None if none runs.

    A pid file that a crash or a reboot left behind may name a process that has nothing to do with it, so the
    process must have the cluster on its command line. (Its working directory would tell too, but root in a
    container may not read that.)
    """
    try:
        pid = int((cluster / "postmaster.pid").read_text().split("\n", 1)[0])
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        ours = os.fsencode(cluster.resolve()) in arguments
    except (OSError, ValueError):
        return None
    return pid if ours else None


def is_free(lock_file: Path) -> bool:
    """Whether no process holds the lock."""
    try:
        with lock_file.open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


def end_server(cluster: Path, server_lock: Path, first: signal.Signals, first_seconds: float) -> bool:
    """Stop the server and wait until the last of its processes has ended: True if so.

    The given signal first, then an immediate shutdown, then SIGKILL; see
    https://www.postgresql.org/docs/current/server-shutdown.html

    Args:
        cluster: PGDATA.
        server_lock: the file on which all processes of the server hold a lock.
        first: SIGTERM (smart), SIGINT (fast) or SIGQUIT (immediate).
        first_seconds: how long to wait after it.
    """
    started = time.monotonic()
    sent: set[tuple[int, signal.Signals]] = set()
    while not is_free(server_lock):
        waited = time.monotonic() - started - first_seconds
        if waited > GIVE_UP_SECONDS:
            return False
        later = signal.SIGQUIT if waited < IMMEDIATE_SHUTDOWN_SECONDS else signal.SIGKILL
        wanted = first if waited < 0 else later
        # A server that is just being started has no pid file yet: look again each time.
        pid = running_postmaster(cluster)
        if pid is not None and (pid, wanted) not in sent:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, wanted)
            sent.add((pid, wanted))
        time.sleep(0.01)
    return True


def _lives(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _take_folder(path: Path, parent: int) -> int | None:
    """Lock the data folder for the parent, and return the lock's file descriptor; None if it is in use."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # The guard of a dead parent will have cleaned up in a moment; that of a living one stays.
            owner = os.pread(lock, 32, 0).decode(errors="replace").strip()
            if (owner.isdigit() and _lives(owner)) or time.monotonic() > deadline:
                return None
            time.sleep(0.05)
        else:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{parent}\n".encode(), 0)
            return lock


def _wait_for_end_of(parent: int) -> None:
    # A fork of the parent keeps the pipe open beyond the parent's death, so look at the parent too.
    while os.getppid() == parent:
        readable, _, _ = select.select([sys.stdin], [], [], LOOK_AT_PARENT_SECONDS)
        if readable:
            return


def main() -> None:
    """Hold the data folder, wait until the parent lets go or dies, then leave nothing behind."""
    watch = Watch(**json.loads(sys.argv[1]))
    lock = _take_folder(Path(watch.folder_lock), watch.parent)
    with contextlib.suppress(BrokenPipeError):
        print(IN_USE if lock is None else READY, flush=True)
    if lock is None:
        return
    _wait_for_end_of(watch.parent)
    # Data that nobody will read again is not worth a checkpoint.
    first = signal.SIGINT if watch.keeps_data else signal.SIGQUIT
    if end_server(Path(watch.cluster), Path(watch.server_lock), first, FAST_SHUTDOWN_SECONDS):
        for folder in watch.remove:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
