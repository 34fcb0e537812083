"""The cluster, that is, the files of one PostgreSQL server: made by initdb, checked before each start."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hookledger.embedded.account import Account
from hookledger.embedded.guard import is_free
from hookledger.errors import SetupError

SUPERUSER = "postgres"
SOCKET_FOLDER_PREFIX = "hookledger-socket-"
KEPT_ELSEWHERE = Path("/var/lib/hookledger")
"""Where the cluster of a data folder lies if the server's account can't reach that folder (a clone in root's home)."""


@dataclass(frozen=True)
class Installation:
    """The PostgreSQL that makes and runs the cluster."""

    bindir: Path
    version: int
    account: Account


@dataclass(frozen=True)
class DataFolder:
    """A folder with the cluster, the server's log and the locks of one embedded server."""

    folder: Path
    kept: bool

    @property
    def cluster(self) -> Path:
        """PGDATA."""
        return self.folder / "data"

    @property
    def log_file(self) -> Path:
        """What the server has logged since its folder was taken."""
        return self.folder / "server.log"

    @property
    def folder_lock(self) -> Path:
        """Locked by the guard as long as the folder is in use."""
        return self.folder / "in-use.lock"

    @property
    def server_lock(self) -> Path:
        """Shared by all processes of the server."""
        return self.folder / "server.lock"

    @property
    def was_killed(self) -> bool:
        """Whether the server ended without shutting down."""
        return (self.cluster / "postmaster.pid").exists() and is_free(self.server_lock)

    def run(self, installation: Installation, command: Sequence[str | Path]) -> bool:
        """Run one of PostgreSQL's programs on this folder: True if it succeeded. It and all that it leaves running
        hold the server's lock; what they print goes to the log."""
        with _opened(self.log_file, os.O_APPEND) as log, _opened(self.server_lock) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            done = subprocess.run(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(self.cluster),
                pass_fds=[lock],
                # Ctrl-C in the terminal is for us; we stop the server in our own time.
                start_new_session=True,
                check=False,
                **installation.account.popen_arguments,
            )
        return done.returncode == 0

    def reason_in_log(self) -> str:
        """The lines of the log that tell why something failed, for an error's sentence."""
        lines = [line.strip() for line in self.log_file.read_text(errors="replace").split("\n") if line.strip()]
        telling = [line for line in lines if any(word in line for word in ("FATAL", "PANIC", "HINT", "error", "could"))]
        return " / ".join((telling or lines)[-4:])

    def prepare(self, installation: Installation) -> None:
        """Make the cluster if there is none, and see that the binaries and the account fit it if there is one.

        Raises:
            SetupError: the cluster is of another major version or another account, or initdb failed.
        """
        with _opened(self.log_file, os.O_TRUNC):
            pass
        if not self.cluster.exists():
            self._make(installation)
        owner = self.cluster.stat().st_uid
        if owner != installation.account.uid:
            raise SetupError(
                f"The data in {self.folder} belongs to the user with the id {owner}, and PostgreSQL would run as "
                f"{installation.account.uid}; run hookledger as the user who made it, or remove that folder."
            )
        if not installation.account.can_enter(self.cluster.resolve()):
            raise SetupError(
                f"The user `nobody`, as which PostgreSQL runs because you are root, cannot reach {self.folder}; "
                "let everybody enter the folders above it, or give another data folder."
            )
        version = (self.cluster / "PG_VERSION").read_text().strip()
        if version != str(installation.version):
            raise SetupError(
                f"The data in {self.folder} was made by PostgreSQL {version}, and the binaries in "
                f"{installation.bindir} are {installation.version}; set PG_BINDIR to those of {version}, or remove "
                "that folder to start anew."
            )

    def forget_killed_server(self, socket_folder: Path) -> None:
        """Remove the lock files of a server that was killed. PostgreSQL would refuse to start as long as any process
        has its id: a zombie that nobody reaps, or a stranger after a reboot.

        Raises:
            SetupError: the server runs after all, started by somebody else.
        """
        if not self.was_killed:
            return
        pid_file = self.cluster / "postmaster.pid"
        # Its lines: https://www.postgresql.org/docs/current/storage-file-layout.html
        lines = [*pid_file.read_text().split("\n"), *[""] * 5]
        with contextlib.suppress(OSError):
            if Path(f"/proc/{lines[0]}/cwd").samefile(self.cluster):
                raise SetupError(
                    f"A PostgreSQL server that hookledger did not start (process {lines[0]}) runs on the data in "
                    f"{self.folder}; stop it, or give another data folder."
                )
        pid_file.unlink()
        for leftover in socket_folder.glob(".s.PGSQL.*"):
            leftover.unlink()
        earlier = Path(lines[4])
        if earlier != socket_folder and earlier.name.startswith(SOCKET_FOLDER_PREFIX):
            shutil.rmtree(earlier, ignore_errors=True)

    def _make(self, installation: Installation) -> None:
        # Made under another name first: initdb that was killed half-way leaves nothing that looks like a cluster.
        unfinished = self.folder / "unfinished"
        _remove(unfinished)
        _remove(self.cluster)
        if installation.account.can_enter(self.folder):
            unfinished.mkdir(mode=0o700)
        else:
            KEPT_ELSEWHERE.mkdir(mode=0o755, parents=True, exist_ok=True)
            unfinished.symlink_to(tempfile.mkdtemp(prefix="data-", dir=KEPT_ELSEWHERE))
        real = unfinished.resolve()
        installation.account.take(real)
        command: list[str | Path] = [
            installation.bindir / "initdb",
            f"--pgdata={real}",
            f"--username={SUPERUSER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-instructions",
        ]
        if installation.version >= 17:
            command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if not self.kept:
            # Not to wait for the disk: nobody reads this folder again after a power failure. The server's fsync is on.
            command.append("--no-sync")
        if not self.run(installation, command):
            raise SetupError(f"initdb could not make a cluster in {real}: {self.reason_in_log()}")
        unfinished.rename(self.cluster)


def _remove(path: Path) -> None:
    if path.is_symlink():
        shutil.rmtree(path.resolve(), ignore_errors=True)
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


@contextlib.contextmanager
def _opened(path: Path, flags: int = 0) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _environment(cluster: Path) -> dict[str, str]:
    """Ours without what would lead PostgreSQL astray. PGDATA is not left to pg_ctl's argument, because that puts it
    into a shell command as it is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG", "TZ"))}
    return kept | {"PGDATA": str(cluster.resolve()), "LC_ALL": "C", "TZ": "UTC"}
