"""Verifying that waits: its source alone waits for it, and within the time of the answer (D3)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hookledger import Inbox
from hookledger.http import Request
from hookledger.receive import IntakeSettings
from hookledger.sources import Account, stripe
from tests.integration.receive.conftest import MakeReceiving
from tests.ledger import Ledger
from tests.processes import wait_until
from tests.receiving import event, shop, signed

LONG = 60.0
MANY = 30


class Waiting:
    """The shop's verifier, which waits for something first."""

    needs_network = True

    def __init__(self) -> None:
        self.comes = threading.Event()
        self.at_work = 0
        self.most_at_work = 0
        self._lock = threading.Lock()

    def verify(self, request: Request, now: float) -> Any:
        with self._lock:
            self.at_work += 1
            self.most_at_work = max(self.most_at_work, self.at_work)
        assert self.comes.wait(LONG)
        with self._lock:
            self.at_work -= 1
        return shop().verifier.verify(request, now)


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    """It goes on when the test ends, at the latest."""
    waiting = Waiting()
    yield waiting
    waiting.comes.set()


def both(waiting: Waiting) -> Inbox:
    return Inbox(shop(), replace(shop("slow"), verifier=waiting))


def slow(event_id: str) -> Request:
    return signed(shop("slow"), {"id": event_id})


def test_the_others_do_not_wait(make_receiving: MakeReceiving, waiting: Waiting, ledger: Ledger) -> None:
    receiving = make_receiving(inbox=both(waiting), settings=IntakeSettings(answer_within=LONG))
    held = [receiving.start(slow(f"s{number}")) for number in range(MANY)]
    wait_until(lambda: waiting.at_work)
    answers = receiving.post_all([event(f"e{number}") for number in range(20)])
    assert {answer.status for answer in answers} == {200}
    assert waiting.at_work
    waiting.comes.set()
    statuses = [each.result().status for each in held]
    assert 200 in statuses
    assert set(statuses) <= {200, 503}
    assert waiting.most_at_work <= 8
    assert ledger.count("deliveries") == 20 + statuses.count(200)


def test_whoever_waits_too_long_is_503_and_nothing_is_recorded(
    make_receiving: MakeReceiving, waiting: Waiting, ledger: Ledger
) -> None:
    receiving = make_receiving(inbox=both(waiting), settings=IntakeSettings(answer_within=0.5))
    answers = receiving.post_all([slow(f"s{number}") for number in range(MANY)])
    assert {answer.status for answer in answers} == {503}
    assert all("retry-after" in dict(answer.headers) for answer in answers)
    waiting.comes.set()
    wait_until(lambda: not waiting.at_work)
    assert ledger.count("deliveries") == 0
    # On a busy machine even that may take too long at first.
    assert wait_until(lambda: receiving.post(slow("s0")).status == 200)


def test_the_number_can_be_chosen(make_receiving: MakeReceiving, waiting: Waiting) -> None:
    settings = IntakeSettings(answer_within=LONG, verifying=MANY)
    receiving = make_receiving(inbox=both(waiting), settings=settings)
    held = [receiving.start(slow(f"s{number}")) for number in range(MANY)]
    wait_until(lambda: waiting.at_work == MANY)
    waiting.comes.set()
    assert {each.result().status for each in held} == {200}


def test_a_function_that_gives_the_secrets_runs_apart_too(make_receiving: MakeReceiving, ledger: Ledger) -> None:
    threads: list[str] = []

    def secrets_of(request: Request) -> Account:
        threads.append(threading.current_thread().name)
        return Account("acme", "k-test-1")

    receiving = make_receiving(inbox=Inbox(stripe(secrets=secrets_of)))
    source = stripe(secrets="k-test-1")
    assert receiving.post(signed(source, {"id": "evt_1"})).status == 200
    assert all(name.startswith("hookledger-verify") for name in threads)
    assert ledger.event_ids() == ["acme:evt_1"]


def test_a_receiver_that_is_closed_meanwhile_answers(make_receiving: MakeReceiving, waiting: Waiting) -> None:
    receiving = make_receiving(inbox=both(waiting), settings=IntakeSettings(answer_within=LONG))
    held = receiving.start(slow("s1"))
    wait_until(lambda: waiting.at_work)
    receiving.start_closing().result()
    waiting.comes.set()
    assert held.result().status == 503
