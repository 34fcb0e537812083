"""Runs the checks: `python -m tests.verify [--quick]`, started by verify.sh."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.verify.decisions import TITLES, decision_of
from tests.verify.servers import other_servers, see_to_pooler

ROOT = Path(__file__).resolve().parents[2]
RECEIPT = ROOT / "verify-receipt.json"
QUICK_TESTS = [
    "tests/unit/test_accept.py",
    "tests/unit/test_accept_encoded.py",
    "tests/unit/test_http.py",
    "tests/unit/test_line.py",
    "tests/unit/test_retry.py",
    "tests/unit/test_storable.py",
    "tests/unit/worker",
    "tests/unit/sources/test_published_vectors.py",
    "tests/unit/sources/test_signatures.py",
    "tests/integration/receive/test_copies.py",
    "tests/integration/receive/test_exact_bytes.py",
]
# Much of the time the tests wait, for processes to start and for states to come. Who is done takes over what waits
# elsewhere, so that no slow file is left over at the end.
PARALLEL = ["-n", "3", "--dist", "worksteal"]
# What another version of PostgreSQL could do in another way. The statements are the same however they are sent, so one
# way to run them is enough; and a network that falls silent is none of its doing. The tests of the embedded server run
# over all the servers of the machine by themselves.
OTHER_SERVER = [
    "-p",
    "tests.verify.one_way",
    "-k",
    "not silent",
    "tests/migrations",
    "tests/integration/receive",
    "tests/integration/worker",
    "tests/concurrency/test_receive_copies_at_once.py",
    "tests/concurrency/test_worker_claim_plans.py",
    "tests/concurrency/test_worker_contention.py",
    "tests/concurrency/test_worker_histories.py",
]
SOAK = ["-m", "tests.soak", "--minutes", "1", "--seed", "1"]
FEW = 8
"""Failed tests that are run again, alone. More of them are no matter of a busy machine."""
PYTHON_SOURCES = ["src", "adapters", "alembic", "tests", "examples", "benchmarks"]


@dataclass
class Check:
    """One line of the result."""

    name: str
    decision: str
    passed: bool
    seconds: float
    again: bool = False
    """Whether a part of it has failed at first, and passed when it was run again, alone."""


def run(command: list[str], **environment: str) -> tuple[bool, str, float]:
    """Run a command; whether it succeeded, what it printed, and how long it took."""
    start = time.monotonic()
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode == 0, done.stdout, time.monotonic() - start


def code_checks() -> list[Check]:
    """Style, types and import rules."""
    python = sys.executable
    scripts = Path(python).parent
    sources = [name for name in PYTHON_SOURCES if (ROOT / name).is_dir()]
    checks = []
    for name, command in {
        "ruff check": [str(scripts / "ruff"), "check", *sources],
        "ruff format": [str(scripts / "ruff"), "format", "--check", *sources],
        "mypy --strict": [python, "-m", "mypy"],
        "mypy --strict over the public names, as a user would": [python, "-m", "mypy", "--strict", "tests/typing"],
        "import rules": [str(scripts / "lint-imports")],
    }.items():
        passed, output, seconds = run(command)
        if not passed:
            print(output, file=sys.stderr)
        checks.append(Check(name, "code", passed, seconds))
    return checks


def soak_check() -> Check:
    """A minute of everything at once."""
    passed, output, seconds = run([sys.executable, *SOAK])
    if not passed:
        print(output, file=sys.stderr)
    return Check("a minute of all faults at random", "faults", passed, seconds)


def test_checks(arguments: list[str], label: str, **environment: str) -> list[Check]:
    """All tests that pytest selects with the arguments, one check a test function."""
    status, entries, seconds = _pytest([*PARALLEL, *arguments], **environment)
    failed = [entry["test"] for entry in entries if entry["outcome"] != "passed"]
    again: set[str] = set()
    if 0 < len(failed) <= FEW and all("::" in test for test in failed):
        # On a busy machine a bound of time may be missed. What fails alone, too, has failed; what does not is told.
        _, once_more, _ = _pytest(["-p", "no:xdist", *failed], **environment)
        outcomes = {entry["test"]: entry["outcome"] for entry in once_more}
        again = {test for test in failed if outcomes.get(test) == "passed"}
    checks: dict[str, Check] = {}
    for entry in entries:
        function = entry["test"].partition("[")[0]
        path, _, name = function.partition("::")
        passed = entry["outcome"] == "passed" or entry["test"] in again
        known = checks.get(function)
        if known is None:
            title = f"{path.removeprefix('tests/')}::{name}{label}"
            known = checks[function] = Check(title, decision_of(path), True, 0.0)
        known.passed = known.passed and passed
        known.again = known.again or entry["test"] in again
        known.seconds += entry["seconds"]
    found = list(checks.values())
    if not found or (status != 0 and not failed):
        found.append(Check(f"pytest{label} ended with status {status}", "code", False, seconds))
    return found


def _pytest(arguments: list[str], **environment: str) -> tuple[int, list[dict[str, Any]], float]:
    """Run pytest. Returns its status, what was recorded of the tests, and how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record"
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "tests.verify.recording", *arguments],
            cwd=ROOT,
            env={**os.environ, **environment, "VERIFY_RECORD": str(record)},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            check=False,
        )
        lines = record.read_text().splitlines() if record.exists() else []
    return done.returncode, [json.loads(line) for line in lines], time.monotonic() - start


def report(checks: list[Check], seconds: float) -> int:
    """Print a line a check, grouped by decision, then the total; and write the receipt."""
    for decision, title in TITLES.items():
        group = [check for check in checks if check.decision == decision]
        if group:
            print(f"\n{decision}  {title}")
        for check in sorted(group, key=lambda check: check.name):
            print(f"{'PASS' if check.passed else 'FAIL'}  {check.name}")
    failed = sum(not check.passed for check in checks)
    again = [check for check in checks if check.again and check.passed]
    RECEIPT.write_text(
        json.dumps(
            {
                "passed": len(checks) - failed,
                "failed": failed,
                "passed_when_run_again": len(again),
                "seconds": round(seconds, 1),
                "python": sys.version.split()[0],
                "checks": [vars(check) for check in checks],
            },
            indent=1,
        )
        + "\n"
    )
    if again:
        print("\nFailed at first, passed when run again alone:")
    for check in again:
        print(f"PASS  {check.decision}  {check.name}")
    if failed:
        # Once more where it is seen, after the many that passed.
        print("\nFailed:")
    for check in checks:
        if not check.passed:
            print(f"FAIL  {check.decision}  {check.name}")
    print(f"\nwall time {seconds:.0f} s, written to {RECEIPT.name}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="verify.sh", description="Check everything this project promises.")
    parser.add_argument("--quick", action="store_true", help="the inner loop: style, types, the fast tests")
    options = parser.parse_args()
    # A shell starts what goes to the background with Ctrl-C ignored, and so would be all that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    start = time.monotonic()
    if options.quick:
        checks = code_checks() + test_checks(QUICK_TESTS, "")
    else:
        # The soak leaves a processor to the checks of the code, which use one at a time.
        with ThreadPoolExecutor(1) as beside:
            soak = beside.submit(soak_check)
            checks = code_checks()
        see_to_pooler()
        checks += [soak.result(), *test_checks(["tests"], "")]
        for name, bindir in other_servers():
            checks += test_checks(OTHER_SERVER, f" on {name}", PG_BINDIR=str(bindir))
        from tests.verify.packages import package_checks

        checks += [Check(name, "package", passed, seconds) for name, passed, seconds in package_checks()]
    return report(checks, time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main())
