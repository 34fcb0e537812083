"""A pytest plugin that writes the outcome of each test to a file, one JSON object a line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


class Recorder:
    """Writes as the tests end, so that a run that is broken off has recorded what it knew."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            record = {
                "test": report.nodeid,
                "outcome": "passed" if report.outcome == "passed" else "failed",
                "seconds": round(report.duration, 2),
            }
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._file.write(json.dumps({"test": report.nodeid, "outcome": "failed", "seconds": 0}) + "\n")
            self._file.flush()


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get("VERIFY_RECORD")
    # With several processes it is the controlling one that is told of all.
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(path)), "verify-recorder")
