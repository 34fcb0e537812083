"""Walks through the model are walked with the statements themselves, and the states agree after every step."""

from __future__ import annotations

from random import Random

import pytest

from tests.model.replay import Stage
from tests.model.state import At, Faults, Setting, State, Step
from tests.model.steps import steps
from tests.model.transactions import locked

WALKS = 8
LONGEST = 60
SETTINGS = (
    Setting(
        "one delivery that may fail",
        (("fails",),),
        stops=True,
        faults=Faults(crashes=1, losses=2, stalls=2, conflicts=1, revivals=1),
    ),
    Setting("poison beside a harmless one", (("poison",), ("good",)), faults=Faults(losses=1, stalls=1)),
    Setting("two handlers", (("good", "fails"),), stops=True, faults=Faults(crashes=1, stalls=2)),
    Setting("two snapshots", (("fails",), ("good",)), versions=(2, 1), batch=1, faults=Faults(crashes=1, stalls=1)),
    Setting("three workers", (("good",), ("fails",)), workers=3, batch=1, faults=Faults(crashes=1, losses=1, stalls=2)),
)
FAULTS_ARE_RARE = 0.25


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_statements_do_what_the_model_does(setting: Setting, database_url: str) -> None:
    random = Random(setting.name)
    with Stage(setting, database_url) as stage:
        for _ in range(WALKS):
            walk(stage, random)


def test_a_claim_that_was_given_back_and_repeated_is_not_taken_for_the_first(database_url: str) -> None:
    """Found by the model: A's claim is rolled back with its connection, and what A gives back is B's claim. A claims
    again and fails; B comes to hold a row with the attempts that it wrote."""
    setting = Setting("", (("fails",),), max_attempts=2, faults=Faults(losses=1))
    with Stage(setting, database_url) as stage:
        stage.begin()
        state = setting.start()
        for name, worker in [
            *[("look", 0), ("look", 1), ("take", 0), ("lost", 0), ("take", 1), ("commit", 1)],
            *[("hold", 0), ("give back", 0), ("commit", 0)],
            *[("look", 0), ("take", 0), ("commit", 0), ("hold", 0), ("lock", 0), ("run", 0), ("commit", 0)],
            ("hold", 1),
        ]:
            group = [step for step in steps(setting, state) if (step.name, step.worker) == (name, worker)]
            # Of the two runs the one that fails is the later.
            state = take(stage, state, group[-1:])
        assert state.rows[0].error
        assert state.workers[1].held == ()


def walk(stage: Stage, random: Random) -> None:
    """One walk at random, from the beginning to where nothing can be done."""
    stage.begin()
    state = stage.setting.start()
    for _ in range(LONGEST):
        possible = [step for step in steps(stage.setting, state) if can_be_made(state, step)]
        woken = [step for step in possible if step.name == "woken"]
        usual = [step for step in possible if not step.fault]
        if not possible:
            return
        # PostgreSQL wakes whoever waits by itself.
        chosen = random.choice(woken or (usual if usual and random.random() > FAULTS_ARE_RARE else possible))
        alike = [step for step in possible if (step.name, step.worker) == (chosen.name, chosen.worker)]
        state = take(stage, state, alike if chosen.name == "take" else [chosen])


def can_be_made(state: State, step: Step) -> bool:
    """Whether the test can bring the step about: time is written into the row, so it must not be locked; and of two
    that wait for one row nobody knows who comes first."""
    if step.name in ("due", "stall"):
        return not locked(state, step.detail[0], -1)
    if step.name == "wait":
        return all(worker.at is not At.WAITING for worker in state.workers)
    return True


def take(stage: Stage, state: State, alike: list[Step]) -> State:
    """Take one of the steps that differ in what PostgreSQL does; the state that follows from what it did."""
    step = alike[0]
    before = state.workers[step.worker]
    told = stage.take_step(before, step)
    if step.name == "take":
        (step,) = [one for one in alike if one.state.workers[one.worker].job.claims == told][:1]
    after = step.state.workers[step.worker]
    if step.name in ("hold", "timeout", "again"):
        assert told == after.held
    if step.name in ("wait", "woken") and after.at is not At.WAITING:
        got = stage.waited(stage.hands[step.worker], overtaken=after.at is At.OVERTAKEN)
        assert tuple(sorted((*before.before, *got))) == after.held
    if step.name == "lock":
        assert told == after.read
    if step.name == "charge":
        assert told == (after.job.claims[0].attempts if after.writes.rows else None)
    assert stage.seen() == (step.state.rows, step.state.ledger, step.state.done, step.state.mark), step.name
    return step.state
