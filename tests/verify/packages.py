"""The built wheel and sdist: what they hold, and the tests of the public surface against the installed wheel."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("hookledger", "hookledger_starlette", "hookledger_flask", "hookledger_migrations")


def package_checks() -> Iterator[tuple[str, bool, float]]:
    """(name, passed, seconds) of each check."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.monotonic()
        built = _run([sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)], ROOT)
        yield "wheel and sdist are built", built, time.monotonic() - start
        wheels = list(folder.glob("dist/*.whl"))
        sdists = list(folder.glob("dist/*.tar.gz"))
        if not built or not wheels or not sdists:
            return
        yield "the wheel holds the packages, typed, and nothing else", _wheel_is_right(wheels[0]), 0.0
        yield "the sdist holds tests, examples and docs", _sdist_is_right(sdists[0]), 0.0
        start = time.monotonic()
        environment = folder / "environment"
        python = environment / "bin" / "python"
        installed = _run([sys.executable, "-m", "venv", str(environment)], folder) and _run(
            [str(python), "-m", "pip", "install", "-q", f"{wheels[0]}[demo]", "pytest", "psutil"], folder
        )
        yield "the wheel installs into a fresh environment", installed, time.monotonic() - start
        if installed:
            start = time.monotonic()
            # From a folder without the sources, so that only the installed wheel can be imported.
            surface = folder / "surface"
            surface.mkdir()
            for file in (ROOT / "tests" / "surface").glob("*.py"):
                (surface / file.name).write_text(file.read_text())
            passed = _run([str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(surface)], folder)
            yield "the public surface works from the installed wheel", passed, time.monotonic() - start


def _run(command: list[str], folder: Path) -> bool:
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    return done.returncode == 0


def _wheel_is_right(wheel: Path) -> bool:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    typed = all(f"{package}/py.typed" in names for package in PACKAGES[:3])
    migrated = {f"hookledger_migrations/versions/hookledger_{number}.py" for number in ("0001", "0002")} <= {*names}
    return tops == set(PACKAGES) and typed and migrated and "hookledger_migrations/script.py.mako" in names


def _sdist_is_right(sdist: Path) -> bool:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"README.md", "LICENSE", "ARCHITECTURE.md", "verify.sh", "pyproject.toml"}
    return wanted <= names and any(name.startswith("tests/") for name in names)
