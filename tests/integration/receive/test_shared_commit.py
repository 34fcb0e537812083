"""Requests that come together share a commit, and none of them spoils it for the others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from hookledger.http import Request, Response
from hookledger.receive import IntakeSettings
from hookledger.receive.line import Line
from tests.gate import Gate
from tests.integration.receive.conftest import MakeReceiving
from tests.ledger import Ledger
from tests.processes import wait_until
from tests.receiving import Receiving, event, many, signed

PATIENT = IntakeSettings(commits=1, answer_within=60, cut_after=60)
"""One commit at a time, so that all who come meanwhile share the next one."""

REFUSING = {
    "at the insert": "CREATE TRIGGER refuse BEFORE INSERT ON deliveries FOR EACH ROW",
    "at the commit": "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON deliveries DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW",
}


def is_long(line: Line, length: int) -> bool:
    return len(line) == length


def is_taken(receiving: Receiving, request: Request) -> bool:
    return receiving.post(request).status == 200


class Gathering:
    """Sends requests of which the test knows that they share one commit."""

    def __init__(self, receiving: Receiving, gate: Gate) -> None:
        self._receiving = receiving
        self._gate = gate

    @contextmanager
    def sharing(self, requests: list[Request]) -> Iterator[list[Future[Response]]]:
        """Have the requests wait in their order until the end of the block, and then go together."""
        line = self._receiving.intake._line
        with self._gate.closed():
            first = self._receiving.start(event("gate"))
            self._gate.wait_for_somebody()
            answers = []
            for count, request in enumerate(requests, 1):
                answers.append(self._receiving.start(request))
                wait_until(partial(is_long, line, count))
            yield answers
        assert first.result().status == 200

    def post(self, *requests: Request) -> list[int]:
        """The statuses of requests that shared a commit."""
        with self.sharing(list(requests)) as answers:
            pass
        return [answer.result().status for answer in answers]


@pytest.fixture
def gathering(make_receiving: MakeReceiving, database_url: str) -> Gathering:
    return Gathering(make_receiving(settings=PATIENT), Gate(database_url))


def refuse(ledger: Ledger, event_id: str, when: str) -> None:
    """Make the database refuse an event."""
    ledger.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN IF NEW.event_id = '{event_id}' THEN RAISE 'no such event'; END IF; RETURN NEW; END $$"
    )
    ledger.run(f"{REFUSING[when]} EXECUTE FUNCTION refuse()")


def test_requests_that_come_together_share_a_commit(gathering: Gathering, ledger: Ledger) -> None:
    assert gathering.post(*[event(f"e{number}") for number in range(50)]) == [200] * 50
    (row,) = ledger.run("SELECT count(DISTINCT d.xmin::text) AS commits FROM deliveries d WHERE event_id <> 'gate'")
    assert row.commits == 1


def test_later_arrivals_have_higher_ids_within_a_commit(gathering: Gathering, ledger: Ledger) -> None:
    """On equal versions the later arrival wins, by its id (D7)."""
    names = [f"e{(number * 37) % 50}" for number in range(50)]
    assert gathering.post(*[event(name, resource="r1", version=1) for name in names]) == [200] * 50
    assert ledger.event_ids() == ["gate", *names]


def test_later_arrivals_have_higher_ids_across_commits(receiving: Receiving, ledger: Ledger) -> None:
    names = [f"e{(number * 37) % 50}" for number in range(50)]
    for name in names:
        assert receiving.post(event(name, resource="r1", version=1)).status == 200
    assert ledger.event_ids() == names


@pytest.mark.parametrize("when", REFUSING)
def test_one_refused_event_does_not_fail_its_neighbours(gathering: Gathering, ledger: Ledger, when: str) -> None:
    refuse(ledger, "e7", when)
    batch = signed(many(), [{"id": "b1"}, {"id": "b2"}])
    statuses = gathering.post(*[event(f"e{number}") for number in range(20)], batch)
    assert statuses == [503 if number == 7 else 200 for number in range(21)]
    assert ledger.event_ids() == ["gate", *[f"e{number}" for number in range(20) if number != 7], "b1", "b2"]
    assert ledger.consistent()
    ledger.run("DROP TRIGGER refuse ON deliveries")
    assert gathering.post(event("e7")) == [200]


def test_a_refused_event_among_copies_does_not_fail_them(gathering: Gathering, ledger: Ledger) -> None:
    assert gathering.post(event("e1"), event("e2")) == [200, 200]
    ledger.bury("e1")
    refuse(ledger, "bad", "at the insert")
    assert gathering.post(event("e1"), event("bad"), event("e2"), event("e3"), event("e3")) == [200, 503, 200, 200, 200]
    assert ledger.pending() == ["gate", "e1", "e2", "e3"]
    assert [copy.event_id for copy in ledger.redeliveries()] == ["gate", "e1", "e2", "e3"]


def test_a_request_that_is_given_up_does_not_stop_the_others(
    make_receiving: MakeReceiving, database_url: str, ledger: Ledger
) -> None:
    gate = Gate(database_url)
    receiving = make_receiving(settings=IntakeSettings(commits=1, answer_within=0.2, cut_after=60))
    with gate.closed():
        assert [answer.status for answer in receiving.post_all([event("gate"), event("e1")])] == [503, 503]
    wait_until(lambda: "gate" in ledger.event_ids())
    assert wait_until(lambda: receiving.post(event("e2")).status == 200)
    assert wait_until(lambda: receiving.post(event("e1")).status == 200)


@pytest.mark.parametrize("bound", ["requests", "bytes"])
def test_over_the_bounds_of_the_line_is_503_and_nothing_is_lost(
    make_receiving: MakeReceiving, database_url: str, ledger: Ledger, bound: str
) -> None:
    settings = replace(PATIENT, retry_after=7)
    settings = replace(settings, max_waiting=5) if bound == "requests" else replace(settings, max_waiting_bytes=50_000)
    receiving = make_receiving(settings=settings)
    gate = Gate(database_url)
    line = receiving.intake._line
    requests = [event(f"e{number}", note="x" * 10_000) for number in range(20)]
    with gate.closed():
        first = receiving.start(event("gate"))
        gate.wait_for_somebody()
        taken = []
        for request in requests:
            if line.full:
                refused = receiving.post(request)
                assert refused.status == 503
                assert ("retry-after", "7") in refused.headers
                early = receiving.intake.admits("shop")
                assert early is not None
                assert early.status == 503
            else:
                before = len(line)
                taken.append(receiving.start(request))
                wait_until(partial(is_long, line, before + 1))
        assert 3 <= len(taken) <= 5
    assert [answer.result().status for answer in [first, *taken]] == [200] * (1 + len(taken))
    assert receiving.intake.admits("shop") is None
    again = [answer.status for answer in receiving.post_all(requests[:4])]
    assert again == [200] * 4
    for request in requests:
        wait_until(partial(is_taken, receiving, request))
    assert sorted(ledger.event_ids()) == sorted(["gate", *[f"e{number}" for number in range(20)]])


def test_a_closed_receiver_refuses_and_what_it_took_is_committed(
    make_receiving: MakeReceiving, database_url: str, ledger: Ledger
) -> None:
    receiving = make_receiving(settings=PATIENT)
    gate = Gate(database_url)
    with gate.closed():
        answers = [receiving.start(event("gate"))]
        gate.wait_for_somebody()
        answers.append(receiving.start(event("e1")))
        wait_until(lambda: len(receiving.intake._line) == 1)
        closing = receiving.start_closing()
        wait_until(lambda: receiving.intake._closed)
        assert receiving.post(event("e2")).status == 503
    closing.result()
    assert [answer.result().status for answer in answers] == [200, 200]
    assert ledger.event_ids() == ["gate", "e1"]
