"""However the process that started an embedded server ends, the server ends with it and leaves nothing behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from hookledger.embedded import EmbeddedPostgres
from tests.databases import query
from tests.processes import Child, all_ended, family, wait_until

START = """
import sys
from pathlib import Path
from hookledger.embedded import EmbeddedPostgres

server = EmbeddedPostgres(Path(sys.argv[1]) if sys.argv[1:] else None)
server.start()
print("pids", server.pid, server._guard.pid, flush=True)
print("url", server.url, flush=True)
"""
START_AND_WAIT = START + "sys.stdin.readline()\n"
START_AND_STOP = START_AND_WAIT + "server.stop()\n"
# The fork inherits every file of the parent, the guard's pipe too, and lives on.
START_AND_FORK = START + "import os, time\nos.fork()\nprint('forked', flush=True)\ntime.sleep(3600)\n"


def family_of(child: Child) -> list[psutil.Process]:
    """The server and the guard that the child has started."""
    return family([int(pid) for pid in child.wait_for_output("pids").split()[1:]])


@pytest.mark.parametrize("program", [START_AND_STOP, START], ids=["stops", "just ends"])
def test_end_of_the_parent(open_folder: Path, program: str) -> None:
    with Child("-c", program, env={"TMPDIR": str(open_folder)}) as child:
        if program is START_AND_STOP:
            processes = family_of(child)
            child.send("go on")
            assert child.wait() == 0
            wait_until(lambda: all_ended(processes))
        assert child.wait() == 0
    wait_until(lambda: not list(open_folder.iterdir()))


def kill(child: Child) -> None:
    child.kill()


def terminate(child: Child) -> None:
    child.signal(signal.SIGTERM)


def interrupt(child: Child) -> None:
    child.interrupt()


@pytest.mark.parametrize("end", [kill, terminate, interrupt])
def test_a_signal_to_the_parent_ends_the_server(open_folder: Path, end: Callable[[Child], None]) -> None:
    with Child("-c", START_AND_WAIT, env={"TMPDIR": str(open_folder)}) as child:
        processes = family_of(child)
        end(child)
        assert child.wait() != 0
        wait_until(lambda: all_ended(processes))
        wait_until(lambda: not list(open_folder.iterdir()))


def test_kill_of_a_parent_whose_fork_lives_on(open_folder: Path) -> None:
    with Child("-c", START_AND_FORK, env={"TMPDIR": str(open_folder)}) as child:
        processes = family_of(child)
        wait_until(lambda: child.output.count("forked") == 2)
        child.kill()
        wait_until(lambda: all_ended(processes))
        wait_until(lambda: not list(open_folder.iterdir()))


def test_kill_of_the_parent_with_clients_at_work(open_folder: Path) -> None:
    with Child("-c", START_AND_WAIT, env={"TMPDIR": str(open_folder)}) as child:
        url = child.wait_for_output("url").split()[1]
        engine = create_engine(url, poolclass=NullPool)
        with engine.connect() as connection:
            connection.execute(text("CREATE TABLE held ()"))
            processes = family_of(child)
            child.kill()
            wait_until(lambda: all_ended(processes))
            with pytest.raises(OperationalError):
                connection.execute(text("SELECT 1"))
            connection.invalidate()
        wait_until(lambda: not list(open_folder.iterdir()))


def test_kill_of_the_parent_while_it_makes_the_cluster(open_folder: Path) -> None:
    with Child("-c", START_AND_WAIT, env={"TMPDIR": str(open_folder)}) as child:
        wait_until(lambda: list(open_folder.glob("*/unfinished/*")))
        processes = family([child.pid])
        child.kill()
        wait_until(lambda: all_ended(processes))
        wait_until(lambda: not list(open_folder.iterdir()))


def test_data_folder_after_the_making_of_the_cluster_was_killed(open_folder: Path) -> None:
    data_folder = open_folder / "data"
    with Child("-c", START_AND_WAIT, data_folder) as child:
        wait_until(lambda: list(open_folder.glob("*/unfinished/*")))
        child.kill()
        with EmbeddedPostgres(data_folder) as server:
            assert query(server.url, "SELECT 1") == 1


def test_takes_over_from_a_parent_that_was_killed(open_folder: Path) -> None:
    data_folder = open_folder / "data"
    with Child("-c", START_AND_WAIT, data_folder) as child:
        query(child.wait_for_output("url").split()[1], "CREATE TABLE kept AS SELECT 7 AS number")
        child.kill()
        with EmbeddedPostgres(data_folder) as server:
            assert query(server.url, "SELECT number FROM kept") == 7


def test_takes_over_from_a_parent_that_was_killed_with_its_guard(open_folder: Path) -> None:
    data_folder, temporary = open_folder / "data", open_folder / "temporary"
    temporary.mkdir(mode=0o755)
    with Child("-c", START_AND_WAIT, data_folder, env={"TMPDIR": str(temporary)}) as child:
        query(child.wait_for_output("url").split()[1], "CREATE TABLE kept AS SELECT 7 AS number")
        postmaster, guard = (int(pid) for pid in child.wait_for_output("pids").split()[1:])
        os.kill(guard, signal.SIGKILL)
        child.kill()
        left = family([postmaster])
        with EmbeddedPostgres(data_folder) as server:
            assert server.pid != postmaster
            assert query(server.url, "SELECT number FROM kept") == 7
        wait_until(lambda: all_ended(left))
