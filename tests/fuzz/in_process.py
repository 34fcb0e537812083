"""Attempts of all providers, given to the intake in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hookledger import Inbox
from hookledger.http import Request, Response
from hookledger.receive import IntakeSettings
from hookledger.receive.accept import Accepted
from tests.fuzz.attempts import Attempt
from tests.fuzz.oracle import expected, not_committed
from tests.fuzz.senders import every
from tests.ledger import Ledger
from tests.receiving import Receiving

SETTINGS = IntakeSettings(answer_within=60, cut_after=30)


class InProcess:
    """An intake with every provider.

    Args:
        way: how it is called, one of tests.receiving.WAYS.
        url: of the database with its ledger.
    """

    def __init__(self, way: str, url: str) -> None:
        self.name = f"in process, {way}"
        self.answers: Counter[int] = Counter()
        self.senders = every()
        self._ledger = Ledger(url)
        inbox = Inbox(*[made.source for made in self.senders.values()])
        self._receiving = Receiving(way, url, inbox=inbox, settings=SETTINGS)

    def send(self, attempts: Sequence[Attempt]) -> None:
        """Send some at once, so that they share commits, and see that every answer is right.

        Raises:
            AssertionError: one is not.
        """
        requests = [attempt.request(self.senders[attempt.source]) for attempt in attempts]
        answers = self._receiving.post_all(requests)
        self.answers.update(answer.status for answer in answers)
        for attempt, request, answer in zip(attempts, requests, answers, strict=True):
            self._check(attempt, request, answer)

    def _check(self, attempt: Attempt, request: Request, answer: Response) -> None:
        assert answer.status < 500, f"{answer.status} to {attempt}"
        source = self.senders[attempt.source].source
        if request.method != "POST" or source.answer_unverified(request) is not None:
            return
        found = expected(source, request)
        if isinstance(found, Accepted):
            assert answer.status == source.accepted.status, f"{answer.status} to {attempt}"
            assert not_committed(self._ledger, found) == [], f"acknowledged and not committed: {attempt}"
        elif isinstance(found, Response):
            assert answer.status == found.status, f"{answer.status} to {attempt}"
        else:
            assert answer.status in (found.status, source.refused_status), f"{answer.status}, not {found}, to {attempt}"

    def memory(self) -> int:
        """Nothing is measured of our own process."""
        return 0

    def trouble(self) -> str:
        """Nothing is logged elsewhere."""
        return ""

    def close(self) -> None:
        self._receiving.close()
