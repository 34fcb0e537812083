"""All states that can be reached, breadth first, and whether the properties hold in every one."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from tests.model.properties import flaw_of, is_final
from tests.model.state import Setting, State, Step
from tests.model.steps import steps


@dataclass
class Explored:
    """What was found.

    Args:
        setting: what was explored.
        states: how many there are.
        steps: how many lead from one to another.
        depth: of the state that is farthest from the start.
        seconds: that it took.
        flaw: the first property that does not hold; empty if all do.
        trace: the steps that lead there.
    """

    setting: Setting
    states: int = 0
    steps: int = 0
    depth: int = 0
    seconds: float = 0.0
    flaw: str = ""
    trace: list[str] = field(default_factory=list)


def canonical(state: State) -> State:
    """The same state, whichever worker is which."""
    workers = state.workers
    if len(workers) == 2:
        if workers[0] > workers[1]:
            return state._replace(workers=(workers[1], workers[0]))
        return state
    return state._replace(workers=tuple(sorted(workers)))


def explore(setting: Setting) -> Explored:
    """Visit every state. Stops at the first flaw."""
    began = time.perf_counter()
    found = Explored(setting)
    start = canonical(setting.start())
    numbers: dict[State, int] = {start: 0}
    came: list[tuple[int, Step | None, int]] = [(-1, None, 0)]
    backwards: list[list[int]] = [[]]
    final: list[int] = []
    waiting: deque[tuple[State, int]] = deque([(start, 0)])
    while waiting:
        state, number = waiting.popleft()
        found.flaw = flaw_of(setting, state)
        if found.flaw:
            found.trace = _trace(came, number)
            break
        if is_final(state):
            final.append(number)
        for step in steps(setting, state):
            found.steps += 1
            after = canonical(step.state)
            known = numbers.get(after)
            if known is None:
                known = numbers[after] = len(numbers)
                depth = came[number][2] + 1
                came.append((number, step._replace(state=start), depth))
                backwards.append([])
                waiting.append((after, known))
                found.depth = max(found.depth, depth)
            if not step.fault:
                backwards[known].append(number)
    found.states = len(numbers)
    if not found.flaw:
        stuck = _stuck(backwards, final)
        if stuck is not None:
            found.flaw = "stuck: from here no end can be reached without a further fault"
            found.trace = _trace(came, stuck)
    found.seconds = time.perf_counter() - began
    return found


def _stuck(backwards: list[list[int]], final: list[int]) -> int | None:
    """The first state from which no final one is reached, going back from those over steps that are no faults."""
    reached = bytearray(len(backwards))
    todo = list(final)
    for number in todo:
        reached[number] = 1
    while todo:
        for before in backwards[todo.pop()]:
            if not reached[before]:
                reached[before] = 1
                todo.append(before)
    missing = reached.find(0)
    return None if missing < 0 else missing


def _trace(came: list[tuple[int, Step | None, int]], number: int) -> list[str]:
    told: list[str] = []
    while True:
        number, step, _ = came[number]
        if step is None:
            return told[::-1]
        told.append(f"{step.name} {','.join(map(str, step.detail))}".strip())
