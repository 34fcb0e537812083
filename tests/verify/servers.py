"""A second version of PostgreSQL for the tests: the system's, installed from its packages where that can be done."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def installed() -> list[tuple[int, Path]]:
    """(major version, folder of binaries) of the PostgreSQL servers that Debian's packages put here."""
    folders = [folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if (folder / "initdb").exists()]
    return sorted((int(folder.parent.name), folder) for folder in folders if folder.parent.name.isdigit())


def other_servers() -> list[tuple[str, Path]]:
    """The servers to test with beside the default one; none if the caller chose one himself."""
    if os.environ.get("DATABASE_URL") or os.environ.get("PG_BINDIR"):
        return []
    if not installed() and os.geteuid() == 0 and shutil.which("apt-get"):
        # Without a cluster: the tests make their own.
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "postgresql"]):
            subprocess.run(command, env=environment, stdout=sys.stderr, check=False)
    servers = [(f"PostgreSQL {version}", folder) for version, folder in installed() if version < 18]
    if not servers:
        print("no second PostgreSQL is installed here: tested with the embedded one only", file=sys.stderr)
    return servers[:1]
