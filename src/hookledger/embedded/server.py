"""A PostgreSQL server of one's own, for the demo, `hookledger dev` and the tests."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeVar

import psycopg
from psycopg import sql
from sqlalchemy import URL

from hookledger.embedded.account import server_account
from hookledger.embedded.binaries import find_bindir, major_version, reachable_bindir
from hookledger.embedded.cluster import SOCKET_FOLDER_PREFIX, SUPERUSER, DataFolder, Installation
from hookledger.embedded.folders import lasting_folder, temporary_folder
from hookledger.embedded.guard import IN_USE, READY, Watch, end_server, running_postmaster
from hookledger.errors import SetupError

StopMode = Literal["fast", "immediate", "smart"]
Value = TypeVar("Value")

SOCKET_PORT = 5432
START_SECONDS = 120
STOP_SECONDS = 60
STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
PORTS_TRIED = 5
FIRST_PORT, PORTS = 15_000, 15_000


class EmbeddedPostgres:
    """A PostgreSQL server that lives as long as this process, at the most.

    It listens on a Unix socket in a folder that only its own account may enter. However this process ends, the
    server ends with it: a guard process sees to that. fsync is on, as anywhere.

    Args:
        data_folder: where the data is kept from one start to the next; made if it is missing. None takes a
            temporary folder, which is removed at stop.
        settings: server settings by name, such as `{"max_connections": "200"}`.
        tcp: listen on a free port of 127.0.0.1 too, with a random password (see `tcp_url_of`).
    """

    def __init__(
        self, data_folder: Path | None = None, *, settings: Mapping[str, str] | None = None, tcp: bool = False
    ) -> None:
        self._wanted_folder = data_folder
        self._settings = dict(settings or {})
        self._tcp = tcp
        self._password = secrets.token_urlsafe(24)
        self._data: DataFolder | None = None
        self._socket_folder: Path | None = None
        self._port: int | None = None
        self._guard: subprocess.Popen[str] | None = None

    @property
    def bindir(self) -> Path:
        """The folder of the PostgreSQL binaries in use."""
        return self._installation.bindir

    @property
    def version(self) -> int:
        """The major version of PostgreSQL, such as 18."""
        return self._installation.version

    @property
    def url(self) -> str:
        """The SQLAlchemy URL of the database `postgres`, as superuser, over the Unix socket."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """The SQLAlchemy URL of the given database, as superuser, over the Unix socket."""
        query = {"host": str(_known(self._socket_folder)), "port": str(self._port or SOCKET_PORT)}
        return URL.create("postgresql+psycopg", SUPERUSER, database=database, query=query).render_as_string()

    def tcp_url_of(self, database: str) -> str:
        """The SQLAlchemy URL of the given database over TCP, with the password; only with `tcp=True`."""
        url = URL.create("postgresql+psycopg", SUPERUSER, self._password, "127.0.0.1", self.port, database)
        return url.render_as_string(hide_password=False)

    @property
    def port(self) -> int:
        """The TCP port on 127.0.0.1; only with `tcp=True`."""
        return _known(self._port)

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        return _known(running_postmaster(_known(self._data).cluster))

    @property
    def log_file(self) -> Path:
        """What the server has logged since its folder was taken."""
        return _known(self._data).log_file

    def start(self) -> None:
        """Start the server; after `kill` or `halt`, with the data and at the address it had. Nothing happens if it
        runs already.

        Raises:
            SetupError: no binaries are found; the data folder is in use, or of another version or account; the
                server does not come up (the message tells what its log says).
        """
        try:
            if self._data is None:
                self._take_folders()
            if running_postmaster(_known(self._data).cluster) is None:
                self._launch()
        except BaseException:
            self._let_go()
            raise

    def halt(self, mode: StopMode = "fast") -> None:
        """Shut the server down, and keep its data and address for the next `start`.

        Args:
            mode: "smart" waits up to a minute for clients to leave, "fast" ends their connections, "immediate"
                does not even write a checkpoint: https://www.postgresql.org/docs/current/app-pg-ctl.html
        """
        data = _known(self._data)
        if not end_server(data.cluster, data.server_lock, STOP_SIGNALS[mode], STOP_SECONDS):
            raise SetupError(f"The embedded PostgreSQL did not stop; see {data.log_file}.")

    def stop(self, mode: StopMode = "fast") -> None:
        """Shut the server down and leave nothing behind but the data folder that was given. Nothing happens if it
        is stopped already."""
        if self._data is None:
            return
        try:
            if self._data.was_killed:
                # Only PostgreSQL itself can find and free the shared memory that a killed server leaves.
                with contextlib.suppress(SetupError):
                    self._launch()
            self.halt(mode)
        finally:
            self._let_go()

    def restart(self, mode: StopMode = "fast") -> None:
        """Shut the server down and start it again: same address, same data."""
        self.halt(mode)
        self.start()

    def kill(self) -> None:
        """Kill all processes of the server at once, as a power failure would; `start` then recovers."""
        data = _known(self._data)
        postmaster = self.pid
        # Stopped first, so that it can't begin another process meanwhile.
        os.kill(postmaster, signal.SIGSTOP)
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in (postmaster, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        end_server(data.cluster, data.server_lock, signal.SIGKILL, STOP_SECONDS)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @cached_property
    def _installation(self) -> Installation:
        account = server_account()
        bindir = reachable_bindir(find_bindir(), account)
        return Installation(bindir, major_version(bindir), account)

    def _take_folders(self) -> None:
        installation = self._installation
        if self._wanted_folder is None:
            folder = temporary_folder("hookledger-data-", installation.account)
        else:
            folder = lasting_folder(self._wanted_folder, installation.account)
        data = self._data = DataFolder(folder, kept=self._wanted_folder is not None)
        self._socket_folder = temporary_folder(SOCKET_FOLDER_PREFIX, installation.account)
        installation.account.take(self._socket_folder)
        self._start_guard()
        # What still runs here was left by a process that was killed together with its guard.
        end_server(data.cluster, data.server_lock, signal.SIGINT, STOP_SECONDS)
        data.prepare(installation)

    def _start_guard(self) -> None:
        data = _known(self._data)
        socket_folder = str(_known(self._socket_folder))
        watch = Watch(
            parent=os.getpid(),
            cluster=str(data.cluster),
            folder_lock=str(data.folder_lock),
            server_lock=str(data.server_lock),
            remove=[socket_folder] if data.kept else [socket_folder, str(data.folder)],
            keeps_data=data.kept,
        )
        self._guard = subprocess.Popen(  # noqa: S603
            watch.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd="/",
            start_new_session=True,
        )
        answer = _known(self._guard.stdout).readline().strip()
        if answer == IN_USE:
            raise SetupError(f"The data folder {data.folder} is in use by another hookledger; stop that one first.")
        if answer != READY:
            raise SetupError(f"The data folder {data.folder} can't be written; give another one.")

    def _launch(self) -> None:
        data, pg_ctl = _known(self._data), self.bindir / "pg_ctl"
        data.forget_killed_server(_known(self._socket_folder))
        # An address that was given out already is kept.
        tries = PORTS_TRIED if self._tcp and self._port is None else 1
        for tries_left in reversed(range(tries)):
            if tries > 1:
                self._port = _free_port()
            self._write_access_rules()
            options = shlex.join(self._server_options())
            if data.run(self._installation, [pg_ctl, "start", "-w", "-t", str(START_SECONDS), "-o", options]):
                break
            reason = data.reason_in_log()
            if not tries_left or "any TCP/IP sockets" not in reason:
                raise SetupError(f"The embedded PostgreSQL did not start: {reason}")
        if self._tcp:
            self._set_password()

    def _server_options(self) -> list[str]:
        socket_folder = str(_known(self._socket_folder)).replace('"', '""')
        settings = {
            **self._settings,
            "unix_socket_directories": f'"{socket_folder}"',
            "unix_socket_permissions": "0700",
            "listen_addresses": "127.0.0.1" if self._tcp else "",
            "port": str(self._port or SOCKET_PORT),
        }
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return ["-D", str(_known(self._data).cluster.resolve()), *given]

    def _write_access_rules(self) -> None:
        rules = "local all all trust\n"
        if self._tcp:
            rules += "host all all 127.0.0.1/32 scram-sha-256\n"
        (_known(self._data).cluster / "pg_hba.conf").write_text(rules)

    def _set_password(self) -> None:
        statement = sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(SUPERUSER), sql.Literal(self._password))
        with psycopg.connect(
            host=str(self._socket_folder), port=self.port, user=SUPERUSER, dbname="postgres"
        ) as connection:
            connection.execute(statement)

    def _let_go(self) -> None:
        """End the guard, which ends whatever of the server still runs and removes what is not to be kept."""
        data, socket_folder, guard = self._data, self._socket_folder, self._guard
        self._data = self._socket_folder = self._guard = self._port = None
        if guard is not None:
            _known(guard.stdin).close()
            guard.wait()
            _known(guard.stdout).close()
        if socket_folder is not None:
            shutil.rmtree(socket_folder, ignore_errors=True)
        if data is not None and not data.kept:
            shutil.rmtree(data.folder, ignore_errors=True)


def _known(value: Value | None) -> Value:
    if value is None:
        raise SetupError("The embedded PostgreSQL is not running, or does not listen there; call start() first.")
    return value


def _free_port() -> int:
    """A port that nobody listens on, below those that the kernel hands out: no outgoing connection takes it while
    the server is down."""
    while True:
        port = FIRST_PORT + secrets.randbelow(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
