"""The benchmarks run, print one JSON object with the promised keys, and find what they acknowledge. No time is
asserted, and no rival is needed but plain psycopg."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookledger.embedded import EmbeddedPostgres


@pytest.fixture
def server_url(own_server: EmbeddedPostgres) -> str:
    """Of a server with little on it: each measurement begins with a checkpoint."""
    return own_server.url


def run(project_root: Path, server_url: str, *arguments: str) -> dict[str, Any]:
    """Run a benchmark on the server, and return the JSON object that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments, "--json", "--runs", "1"],
        cwd=project_root,
        env={**os.environ, "DATABASE_URL": server_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    for key in ("ratios", "options", "machine", "server", "versions"):
        assert key in result
    return result


def test_drain_compares_with_plain_psycopg(project_root: Path, server_url: str) -> None:
    result = run(project_root, server_url, "drain", "--deliveries", "300", "--only", "plain_insert")

    assert set(result["ratios"]) == {"plain_insert"}
    assert set(result["medians_per_second"]) == {"ours_insert", "plain_insert"}
    assert sum(result["outcomes_of_last_run"]["ours_insert"].values()) == 300


def test_receive_compares_with_a_bare_application(project_root: Path, server_url: str) -> None:
    result = run(project_root, server_url, "receive", "--seconds", "0.3", "--warm-up", "0.1", "--only", "bare")

    assert set(result["ratios"]) == {"bare"}
    assert set(result["medians_per_second"]) == {"ours", "bare"}


def test_latency_gives_percentiles_and_the_cost_of_idling(project_root: Path, server_url: str) -> None:
    arguments = ("--deliveries", "3", "--pause", "0.01", "--idle-seconds", "0.2")
    result = run(project_root, server_url, "latency", *arguments)

    assert {"p50_ms", "p99_ms", "idle_cpu_percent"} <= set(result)
    assert set(result["ratios"]) == {"p50_ms", "p99_ms", "idle_cpu_percent"}


def test_growth_prints_the_curves_that_were_asked_for(project_root: Path, server_url: str) -> None:
    arguments = ("--quick", "--only", "ledger,resources,burst", "--deliveries", "200")
    sizes = ("--settled", "10", "--pending", "300", "--bursts", "30", "--burst-held", "0.1")
    result = run(project_root, server_url, "growth", *arguments, *sizes)

    assert [row["settled"] for row in result["ledger"]] == [10, 0]
    assert [row["resources"] for row in result["resources"]] == [1000, 1]
    assert result["burst"][0]["acknowledged"] == 30
    assert result["burst"][0]["acknowledged_but_lost"] == 0
    wanted = {"ledger_slowest_to_fastest", "one_hot_resource_to_many", "burst_acknowledged_but_lost"}
    assert wanted <= set(result["ratios"])
