"""The bounds of a receiver."""

from __future__ import annotations

from dataclasses import dataclass

from hookledger.receive.quarantine import Quarantine

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class IntakeSettings:
    """Bounds of a receiver.

    Args:
        max_body_bytes: a larger body gets 413.
        answer_probes: answer GET, HEAD and OPTIONS with 200, as providers look before they register a URL.
        answer_within: seconds until a request that is not committed gets 503.
        cut_after: seconds after which a commit that does not end is cut, so that one event that waits for a lock,
            or a network that has gone silent, does not stop the receiver; large commits get more.
        max_waiting: requests that may wait for a commit; what is over it gets 503.
        max_waiting_bytes: bytes that they may hold together.
        commits: shared commits that may be under way at a time; each takes a connection of the engine's pool.
        max_commit_requests, max_commit_bytes: bounds of one shared commit.
        retry_after: seconds that a 503 tells the sender to wait.
        verifying: requests that may be verified at a time where that waits for keys or for a function of yours, each
            in a thread; None for 8, and for 3 in a threaded server. Such a server should have more threads than that:
            those that are left are for the other sources.
        quarantine: which refused requests are kept, to look at them and to let them in later; None keeps none.
    """

    max_body_bytes: int = 25 * MEBIBYTE
    answer_probes: bool = True
    answer_within: float = 4.5
    cut_after: float = 1.5
    max_waiting: int = 2_000
    max_waiting_bytes: int = 128 * MEBIBYTE
    commits: int = 3
    max_commit_requests: int = 500
    max_commit_bytes: int = 8 * MEBIBYTE
    retry_after: int = 5
    verifying: int | None = None
    quarantine: Quarantine | None = None
