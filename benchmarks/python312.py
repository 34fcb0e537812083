"""A Python of 3.12 or newer with oban, for the one rival that this interpreter may be too old for."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Failed, tell

LEAST = (3, 12)
NEEDS = ("oban>=0.7,<1",)
NAMES = ("python3.12", "python3.13", "python3.14", "python3.15", "python3")


def python_with_oban() -> str:
    """An interpreter that has oban: this one, or one with an environment of its own in the cache folder.

    Raises:
        Failed: there is none, and what to do about it.
    """
    if sys.version_info >= LEAST:
        if importlib.util.find_spec("oban") is None:
            raise Failed("oban is not installed: pip install '.[benchmarks]'")
        return sys.executable
    return str(_environment(_newer_python()))


def _newer_python() -> str:
    given = os.environ.get("BENCHMARK_PYTHON")
    candidates = [given] if given else [found for name in NAMES for found in [*_everywhere(name), *_of_pyenv(name)]]
    for candidate in candidates:
        if _is_new_enough(candidate):
            return candidate
    raise Failed(
        "oban needs Python 3.12 or newer, and none was found: set BENCHMARK_PYTHON to one"
        if not given
        else f"BENCHMARK_PYTHON names {given}, which is no Python 3.12 or newer that runs"
    )


def _everywhere(name: str) -> list[str]:
    found = [shutil.which(name, path=folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    return [path for path in found if path]


def _of_pyenv(name: str) -> list[str]:
    # pyenv's own commands on PATH refuse versions that are installed, but not chosen.
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return [str(path) for path in sorted(root.glob(f"versions/*/bin/{name}"))]


def _is_new_enough(python: str) -> bool:
    code = f"import sys, venv; sys.exit(sys.version_info < {LEAST})"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, timeout=30, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _environment(python: str) -> Path:
    wanted = hashlib.sha256(repr((python, NEEDS)).encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if not os.access(cache.parent, os.W_OK):
        cache = Path(tempfile.gettempdir())
    folder = cache / "hookledger-benchmarks" / f"oban-{wanted}"
    inside = folder / "bin" / "python"
    complete = folder / "complete"
    if not complete.exists():
        tell("making an environment for oban")
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        for command in ([python, "-m", "venv", str(folder)], [str(inside), "-m", "pip", "install", "-q", *NEEDS]):
            done = subprocess.run(command, stdout=sys.stderr, stdin=subprocess.DEVNULL, check=False)
            if done.returncode:
                raise Failed(f"oban could not be installed: {' '.join(command[1:4])} ended with {done.returncode}")
        complete.touch()
    return inside
