"""Event loops that end, threads that cannot be started, requests that are given up: the receiver goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from hookledger.errors import SetupError
from hookledger.receive import Intake, IntakeSettings
from tests.gate import Gate
from tests.ledger import Ledger
from tests.processes import wait_until
from tests.receiving import Loop, event, inbox

SETTINGS = IntakeSettings(commits=1, max_waiting=1, answer_within=60, cut_after=60)
"""One request at a time: who does not leave the line keeps all others out."""


@pytest.fixture
def ledger(database_url: str) -> Ledger:
    return Ledger(database_url)


@pytest.fixture
def gate(database_url: str) -> Gate:
    return Gate(database_url)


@pytest.fixture
def intake(engine: Engine) -> Iterator[Intake]:
    intake = Intake(inbox(), engine, SETTINGS)
    yield intake
    intake.close()


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


def cancel_all(loop: Loop) -> None:
    """What asyncio.run does at its end."""

    async def cancel() -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    loop.run(cancel())


def test_a_loop_that_is_closed_during_a_commit_costs_no_thread(
    intake: Intake, gate: Gate, ledger: Ledger, loop: Loop
) -> None:
    ending = Loop()
    with gate.closed():
        ending.start(intake.receive(event("gate")))
        gate.wait_for_somebody()
        cancel_all(ending)
        ending.close()
    wait_until(lambda: ledger.event_ids() == ["gate"])
    assert wait_until(lambda: loop.run(intake.receive(event("e1"))).status == 200)
    assert ledger.event_ids() == ["gate", "e1"]


def test_a_loop_that_ends_during_a_commit_leaves_the_line(database_url: str, gate: Gate, ledger: Ledger) -> None:
    first, second = Loop(), Loop()
    engine = create_async_engine(database_url)
    intake = Intake(inbox(), engine, SETTINGS)
    with gate.closed():
        first.start(intake.receive(event("gate")))
        gate.wait_for_somebody()
        cancel_all(first)
        assert second.run(intake.receive(event("e1"))).status == 200
        second.run(intake.aclose())
    first.run(engine.dispose())
    first.close()
    second.close()
    assert ledger.event_ids() == ["e1"]


def test_a_request_that_is_cancelled_does_not_stop_the_others(
    intake: Intake, gate: Gate, ledger: Ledger, loop: Loop
) -> None:
    with gate.closed():
        given_up = loop.start(intake.receive(event("gate")))
        gate.wait_for_somebody()
        given_up.cancel()
    assert wait_until(lambda: loop.run(intake.receive(event("e1"))).status == 200)
    assert ledger.event_ids() == ["gate", "e1"], "what had begun is committed"


def test_a_request_that_is_cancelled_before_its_commit_is_passed_over(
    database_url: str, gate: Gate, ledger: Ledger, loop: Loop
) -> None:
    engine = create_engine(database_url)
    intake = Intake(inbox(), engine, IntakeSettings(commits=1, answer_within=60, cut_after=60))
    with gate.closed():
        first = loop.start(intake.receive(event("gate")))
        gate.wait_for_somebody()
        given_up = loop.start(intake.receive(event("given up")))
        wait_until(lambda: len(intake._line) == 1)
        given_up.cancel()
        loop.run(asyncio.sleep(0))  # the cancellation has been seen by then
        last = loop.start(intake.receive(event("e1")))
        wait_until(lambda: len(intake._line) == 2)
    assert [first.result().status, last.result().status] == [200, 200]
    intake.close()
    engine.dispose()
    assert ledger.event_ids() == ["gate", "e1"]


@pytest.mark.parametrize("blocking", [True, False])
def test_a_process_that_may_start_no_thread_answers_503_until_it_may(
    intake: Intake, ledger: Ledger, loop: Loop, monkeypatch: pytest.MonkeyPatch, blocking: bool
) -> None:
    def post(event_id: str) -> int:
        if blocking:
            return intake.receive_blocking(event(event_id)).status
        status: int = loop.run(intake.receive(event(event_id))).status
        return status

    with monkeypatch.context() as patched:

        def start(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        patched.setattr(threading.Thread, "start", start)
        assert post("e1") == 503
    assert wait_until(lambda: post("e2") == 200)
    assert ledger.event_ids() == ["e2"]


def test_an_asynchronous_engine_is_refused_to_threads(database_url: str) -> None:
    intake = Intake(inbox(), create_async_engine(database_url))
    with pytest.raises(SetupError, match="create_engine"):
        intake.receive_blocking(event("e1"))


def test_two_receivers_share_an_engine(engine: Engine, ledger: Ledger) -> None:
    intakes = [Intake(inbox(), engine) for _ in range(3)]
    assert [intake.receive_blocking(event(f"e{number}")).status for number, intake in enumerate(intakes)] == [200] * 3
    for intake in intakes:
        intake.close()
    assert ledger.event_ids() == ["e0", "e1", "e2"]


def test_a_closed_receiver_has_ended_its_threads(engine: Engine) -> None:
    before = set(threading.enumerate())
    intake = Intake(inbox(), engine)
    assert intake.receive_blocking(event("e1")).status == 200
    intake.close()
    left = [thread.name for thread in set(threading.enumerate()) - before]
    assert [name for name in left if "commit" in name or "announce" in name] == []
