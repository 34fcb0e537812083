"""Searching for a sequence of the same deliveries in which handlers end in another state (D6, D7)."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import text

from hookledger.errors import SetupError
from hookledger.inbox import Inbox
from hookledger.testing import report
from hookledger.testing.databases import LedgerDatabase
from hookledger.testing.given import Given, read_given
from hookledger.testing.plan import Plan, once_each, reference_order
from hookledger.testing.stage import Ended, Stage
from hookledger.testing.state import ReadState, reader

EXAMPLES = 100
MOST_SHRINKS = 150
"""Sequences that are played to make the first one smaller that was found: a number and no time, so that what is found
does not depend on the machine."""
LEAST_ATTEMPTS = 2
"""The first crash never makes a dead letter, whatever the policy says (D10)."""


class Difference(NamedTuple):
    """A sequence that ended in another state than its deliveries do, each once and in order."""

    plan: Plan
    ended: Ended
    order: tuple[int, ...]
    reference: Ended


def assert_converges(
    database: LedgerDatabase,
    inbox: Inbox,
    deliveries: Sequence[Any],
    read_state: ReadState,
    *,
    reset: Callable[[], Any] | None = None,
    examples: int = EXAMPLES,
    dead_letters: bool = False,
) -> None:
    """See that your handlers end in one state, however deliveries come and whatever happens meanwhile.

    The deliveries are sent in many sequences: some of them or all, in any order, again and again, with workers that
    take them one by one, together, two at the same time, or die at one of their commits. Each sequence must end in the
    state in which the same deliveries end when each comes once, in the order given. Only snapshots of one resource with
    one version keep the order in which they came, because of those the later arrival wins. The same sequences are tried
    each time. Before each of them, and at the end, the database is put back to how it was at the call.

    Args:
        database: with your tables, and a ledger in which nothing is yet.
        inbox: the handlers.
        deliveries: each `(source, event)`, or a Request as `signed` makes it. They need not verify. A handful does:
            two or more of one resource, and one of each kind.
        read_state: what is compared: a function of a SQLAlchemy Connection, or a query, or a list of queries. Leave out
            what may differ, such as numbers from a sequence. Rows of a query are compared in no order.
        reset: puts back what is not in the database, as a module's variable; called before each sequence.
        examples: how many sequences are tried.
        dead_letters: whether some of the deliveries are given up even when each comes once, in order.

    Raises:
        AssertionError: with the smallest sequence that was found to end in another state, or the reason why the
            deliveries show nothing.
        SetupError: for something that cannot be tried.
        TimeoutError: if a handler does not end.
    """
    __tracebackhide__ = True
    if importlib.util.find_spec("hypothesis") is None:
        raise SetupError("assert_converges needs Hypothesis: run pip install 'hookledger[testing]'")
    read = reader(read_state)
    given = read_given(inbox, deliveries)
    _require_empty(database, inbox)
    with Stage(database, inbox, given, read, reset) as stage:
        search = Search(stage, inbox, given)
        wrong = search.check_reference(dead_letters=dead_letters)
        found = None if wrong else search.run(examples)
    if wrong:
        raise AssertionError(wrong)
    if found is not None:
        raise AssertionError(report.difference(given, found, search.tried))


class Search:
    """Tries sequences.

    Args:
        stage: to play them on.
        inbox: the handlers.
        given: the deliveries.
    """

    def __init__(self, stage: Stage, inbox: Inbox, given: Sequence[Given]) -> None:
        self._stage = stage
        self._given = given
        stage.begin_anew()
        self._tied = stage.recorder.tied(inbox, given)
        attempts = min((inbox.retry_of(handler).max_attempts for handler in inbox.handlers.values()), default=1)
        self._most_deaths = max(LEAST_ATTEMPTS, attempts) - 1
        self._references: dict[tuple[int, ...], Ended] = {}
        self._known: dict[Plan, Difference | None] = {}
        self._smallest: Difference | None = None
        self._left = MOST_SHRINKS

    @property
    def tried(self) -> int:
        """How many sequences were played."""
        return len(self._known)

    def check_reference(self, *, dead_letters: bool) -> str | None:
        """Why nothing can be learned from these deliveries, if that is so."""
        order = tuple(range(len(self._given)))
        first, second = self._reference(order), self._stage.play(once_each(order))
        everything = {(new.source, new.event_id) for one in self._given for new in one.accepted.events}
        if first.ignored >= everything:
            return report.all_ignored(self._given)
        if first.dead and not dead_letters:
            return report.dead(first)
        if not first.is_as(second):
            return report.not_repeatable(self._given, first, second)
        return None

    def run(self, examples: int) -> Difference | None:
        """The smallest sequence that was found to end in another state, if any was."""
        from hypothesis import HealthCheck, Phase, Verbosity, given, settings

        from hookledger.testing.strategies import plans

        @settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            verbosity=Verbosity.quiet,
            print_blob=False,
        )
        @given(plans(len(self._given), self._most_deaths))
        def each_ends_as_its_reference(plan: Plan) -> None:
            try:
                found = self.try_once(plan)
            except Exception as error:
                raise _Broken(error) from error
            if found is not None:
                self._smallest = found
                raise _Differs

        try:
            each_ends_as_its_reference()
        except _Differs:
            return self._smallest
        except _Broken as broken:
            raise broken.error from None
        return None

    def try_once(self, plan: Plan) -> Difference | None:
        """Play a sequence, unless that was done before, and compare how it ends."""
        if plan in self._known:
            return self._known[plan]
        if self._smallest is not None:
            if not self._left:
                return None
            self._left -= 1
        order = reference_order(plan.arrivals, self._tied)
        reference = self._reference(order)
        ended = self._stage.play(plan)
        found = None if ended.is_as(reference) else Difference(plan, ended, order, reference)
        self._known[plan] = found
        return found

    def _reference(self, order: tuple[int, ...]) -> Ended:
        if order not in self._references:
            self._references[order] = self._stage.play(once_each(order))
        return self._references[order]


class _Differs(Exception):
    """A sequence ended in another state."""


class _Broken(BaseException):
    """A sequence could not be played. No Exception, for which Hypothesis would look for a smaller sequence."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def _require_empty(database: LedgerDatabase, inbox: Inbox) -> None:
    quoted = '"' + inbox.schema.replace('"', '""').replace(":", r"\:") + '"'
    with database.engine.connect() as connection:
        if connection.execute(text(f"SELECT EXISTS (SELECT FROM {quoted}.deliveries)")).scalar_one():  # noqa: S608
            raise SetupError("the ledger has deliveries already: call assert_converges before anything is posted to it")
