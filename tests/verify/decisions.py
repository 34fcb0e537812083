"""Which decision of ARCHITECTURE.md a test holds, by the file it is in."""

from __future__ import annotations

from fnmatch import fnmatch

TITLES = {
    "D1": "Acknowledge only what is committed",
    "D2": "Keep the exact bytes",
    "D3": "Verify first, fail closed",
    "D4": "One event, one row",
    "D5": "Batches",
    "D6": "Exactly once where it can be promised",
    "D7": "Order is guarded by the watermark",
    "D8": "Fixed lock order",
    "D9": "SKIP LOCKED is the entire scheduler",
    "D10": "Crashes count, poison is isolated",
    "D11": "One way in",
    "D12": "Sync and async are one code path",
    "D13": "Live beside the user's schema",
    "D14": "Frameworks at the edge",
    "faults": "All faults at random, and the books balance",
    "code": "Style, types, imports",
    "package": "Wheel and sdist",
    "tools": "Command line, demo, embedded server, examples, the kit for users' tests",
    "model": "Values and settings",
}

BY_FILE: tuple[tuple[str, str], ...] = (
    ("tests/migrations/*", "D13"),
    ("tests/unit/sources/*", "D3"),
    ("tests/unit/test_refusals.py", "D3"),
    ("tests/unit/test_verifying.py", "D3"),
    ("tests/integration/receive/test_refused.py", "D3"),
    ("tests/integration/receive/test_waiting_for_keys.py", "D3"),
    ("tests/adapters/test_slow_keys.py", "D3"),
    ("tests/adapters/*", "D14"),
    ("tests/unit/test_storable.py", "D2"),
    ("tests/unit/test_http.py", "D2"),
    ("tests/unit/test_version.py", "D7"),
    ("tests/unit/test_accept.py", "D4"),
    ("tests/unit/test_line.py", "D1"),
    ("tests/unit/test_retry.py", "D10"),
    ("tests/unit/worker/test_decide.py", "D7"),
    ("tests/unit/worker/*", "D6"),
    ("tests/integration/receive/test_exact_bytes.py", "D2"),
    ("tests/integration/receive/test_batches.py", "D5"),
    ("tests/integration/receive/test_copies.py", "D4"),
    ("tests/integration/receive/*", "D1"),
    ("tests/concurrency/test_receive_copies_at_once.py", "D4"),
    ("tests/concurrency/test_receive_*", "D1"),
    ("tests/integration/worker/test_heal.py", "D7"),
    ("tests/integration/worker/test_misuse.py", "D6"),
    ("tests/integration/worker/test_order.py", "D7"),
    ("tests/integration/worker/test_failures.py", "D10"),
    ("tests/integration/worker/test_pauses.py", "D10"),
    ("tests/integration/worker/test_revive_ignored.py", "D11"),
    ("tests/concurrency/test_worker_rolling_deploy.py", "D11"),
    ("tests/integration/worker/*", "D6"),
    ("tests/concurrency/test_replay_*", "D11"),
    ("tests/concurrency/test_worker_killed.py", "D6"),
    ("tests/concurrency/test_worker_histories.py", "D7"),
    ("tests/concurrency/test_worker_contention.py", "D8"),
    ("tests/concurrency/test_worker_claim*", "D9"),
    ("tests/concurrency/test_worker_slow*", "D9"),
    ("tests/concurrency/*", "D10"),
    ("tests/faults/test_walk_of_the_receiver.py", "D1"),
    ("tests/faults/test_walk_of_the_worker.py", "D6"),
    ("tests/faults/test_clocks.py", "D9"),
    ("tests/faults/test_pooler.py", "D13"),
    ("tests/faults/test_worker_after_fork.py", "D12"),
    ("tests/faults/*", "D10"),
    ("tests/model/*", "D9"),
    ("tests/soak/*", "faults"),
    ("tests/integration/operate/replay/*", "D11"),
    ("tests/integration/operate/story/*", "tools"),
    ("tests/unit/operate/*", "tools"),
    ("tests/integration/test_embedded*", "tools"),
    ("tests/integration/doctor/*", "tools"),
    ("tests/end_to_end/*", "tools"),
    ("tests/unit/cli/*", "tools"),
    ("tests/unit/test_docs.py", "tools"),
    ("tests/cases/test_signature_cases.py", "D3"),
    ("tests/cases/test_storage_cases.py", "D2"),
    ("tests/cases/test_adapter_cases.py", "D14"),
    ("tests/cases/*", "tools"),
    ("tests/fuzz/*", "D1"),
    ("tests/unit/demo/*", "tools"),
    ("tests/unit/benchmarks/*", "tools"),
    ("tests/testing/test_converge*", "D7"),
    ("tests/testing/*", "tools"),
    ("tests/surface/*", "package"),
)
"""(pattern of the test's file, decision); the first that fits holds."""


def decision_of(path: str) -> str:
    """The decision that the tests of a file hold."""
    for pattern, decision in BY_FILE:
        if fnmatch(path, pattern):
            return decision
    return "model"
