"""What the tests need of the system, a second version of PostgreSQL and a pooler: installed from its packages where
that can be done."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.faults.pooler import program


def installed() -> list[tuple[int, Path]]:
    """(major version, folder of binaries) of the PostgreSQL servers that Debian's packages put here."""
    folders = [folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if (folder / "initdb").exists()]
    return sorted((int(folder.parent.name), folder) for folder in folders if folder.parent.name.isdigit())


def other_servers() -> list[tuple[str, Path]]:
    """The servers to test with beside the default one; none if the caller chose one himself."""
    if os.environ.get("DATABASE_URL") or os.environ.get("PG_BINDIR"):
        return []
    if not installed():
        # Without a cluster: the tests make their own.
        install("postgresql")
    servers = [(f"PostgreSQL {version}", folder) for version, folder in installed() if version < 18]
    if not servers:
        print("no second PostgreSQL is installed here: tested with the embedded one only", file=sys.stderr)
    return servers[:1]


def install(package: str) -> None:
    """Install a package of Debian's, if we may."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", package]):
        subprocess.run(command, env=environment, stdout=sys.stderr, check=False)


def see_to_pooler() -> None:
    """See that there is a pooler; where there is none, the tests with one are skipped."""
    if program() is None:
        install("pgbouncer")
    if program() is None:
        print("no pgbouncer is installed here: not tested with a pooler", file=sys.stderr)
