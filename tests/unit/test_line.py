"""The waiting line: in the order of arrival, bounded, and its count always right."""

from __future__ import annotations

import itertools
import threading
from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from hookledger.errors import Unavailable
from hookledger.receive.accept import Accepted
from hookledger.receive.line import Entry, Line
from hookledger.receive.waiter import ThreadWaiter
from tests.receiving import shop

SOURCE = shop()


def entry(size: int = 0) -> Entry:
    return Entry(Accepted(SOURCE, "[]", b"x" * size, ()), ThreadWaiter())


EMPTY = entry().size


def test_entries_come_out_in_the_order_of_their_arrival() -> None:
    line = Line(100, 10**9)
    entries = [entry() for _ in range(10)]
    assert line.join(entries) == []
    assert line.take(4, 10**9) == entries[:4]
    assert line.take(100, 10**9) == entries[4:]
    assert line.take(100, 10**9) == []


def test_a_commit_takes_so_many_bytes_but_always_one_entry() -> None:
    line = Line(100, 10**9)
    entries = [entry(1000), entry(10), entry(10), entry(10)]
    assert line.join(entries) == []
    assert line.take(100, 100) == entries[:1]
    assert line.take(100, 2 * (EMPTY + 10)) == entries[1:3]


def test_a_full_line_refuses_until_entries_are_finished() -> None:
    line = Line(2, 10**9)
    entries = [entry() for _ in range(4)]
    assert [(each, type(error)) for each, error in line.join(entries)] == [(each, Unavailable) for each in entries[2:]]
    taken = line.take(1, 10**9)
    assert line.full, "what is in a commit counts until it is finished"
    line.release(taken)
    assert line.join([entry()]) == []


def test_a_line_full_of_bytes_refuses() -> None:
    line = Line(100, 2 * (EMPTY + 1000))
    assert line.join([entry(1000), entry(1000)]) == []
    ((_, error),) = line.join([entry()])
    assert "bytes" in str(error)


def test_an_event_counts_for_more_than_its_bytes() -> None:
    source = shop()
    bare = Entry(Accepted(source, "[]", b"", ()), ThreadWaiter())
    of_many = Entry(Accepted(source, "[]", b"", (None,) * 1000), ThreadWaiter())  # type: ignore[arg-type]
    assert of_many.size > bare.size + 100_000


def test_who_waits_is_woken_by_an_arrival() -> None:
    line = Line(100, 10**9)
    found: list[list[Entry]] = []
    waiting = threading.Thread(target=lambda: found.append(line.take_or_wait(10, 10**9, 60)))
    waiting.start()
    arrived = entry()
    line.join([arrived])
    waiting.join(30)
    assert found == [[arrived]]


def test_who_waits_is_woken_at_the_end() -> None:
    line = Line(100, 10**9)
    ended = threading.Event()

    def wait() -> None:
        assert line.take_or_wait(10, 10**9, 60) == []
        ended.set()

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    while not ended.is_set():
        line.wake()
    waiting.join()


def test_threads_that_join_and_take_lose_and_double_nothing() -> None:
    line = Line(10**6, 10**12)
    joined = [[entry() for _ in range(500)] for _ in range(4)]
    taken: list[list[Entry]] = [[] for _ in range(4)]
    ended = threading.Event()

    def take(mine: list[Entry]) -> None:
        while True:
            before = ended.is_set()
            found = line.take_or_wait(7, 10**12, 0.01)
            mine += found
            line.release(found)
            if not found and before:
                return

    def join(entries: list[Entry]) -> None:
        for one in entries:
            line.join([one])

    takers = [threading.Thread(target=take, args=(mine,)) for mine in taken]
    joiners = [threading.Thread(target=join, args=(each,)) for each in joined]
    for thread in [*takers, *joiners]:
        thread.start()
    for thread in joiners:
        thread.join()
    ended.set()
    for thread in takers:
        thread.join()
    assert Counter(map(id, itertools.chain(*taken))) == Counter(map(id, itertools.chain(*joined)))
    assert not line.full
    assert len(line) == 0


class LineMachine(RuleBasedStateMachine):
    """Whatever is done in whatever order, the line holds as much as it says."""

    waiting = Bundle("waiting")
    commits = Bundle("commits")

    def __init__(self) -> None:
        super().__init__()
        self.line = Line(5, 5 * EMPTY + 300)
        self.model: list[Entry] = []
        self.in_commit: list[Entry] = []

    def held(self) -> list[Entry]:
        return self.model + self.in_commit

    @rule(target=waiting, size=st.integers(0, 200))
    def join(self, size: int) -> Entry:
        arriving = entry(size)
        full = len(self.held()) >= 5 or sum(each.size for each in self.held()) >= 5 * EMPTY + 300
        assert bool(self.line.join([arriving])) == full
        if not full:
            self.model.append(arriving)
        return arriving

    @rule(gone=consumes(waiting))
    def give_up(self, gone: Entry) -> None:
        assert isinstance(gone.waiter, ThreadWaiter)
        gone.waiter.gone = True

    @rule(target=commits, most=st.integers(1, 4), most_bytes=st.integers(0, 3 * EMPTY))
    def take(self, most: int, most_bytes: int) -> list[Entry]:
        taken = self.line.take(most, most_bytes)
        passed = self.model[: self.model.index(taken[-1]) + 1] if taken else []
        assert [each for each in passed if not each.abandoned] == taken
        assert len(taken) <= most
        assert len(taken) <= 1 or sum(each.size for each in taken) <= most_bytes
        if not taken:
            assert all(each.abandoned for each in self.model)
        # Those that were given up are passed over as they come to the front.
        left = self.model[len(passed) :]
        self.model = left[len(left) - len(self.line) :]
        self.in_commit += taken
        return taken

    @rule(finished=consumes(commits))
    def release(self, finished: list[Entry]) -> None:
        self.line.release(finished)
        self.in_commit = [each for each in self.in_commit if each not in finished]

    @invariant()
    def it_is_full_exactly_when_it_should_be(self) -> None:
        assert len(self.line) == len(self.model)
        assert self.line.full == (len(self.held()) >= 5 or sum(each.size for each in self.held()) >= 5 * EMPTY + 300)


LineMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestLine = LineMachine.TestCase
