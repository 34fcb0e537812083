"""Which sequences are tried: a strategy of Hypothesis, made so that what is smaller is simpler."""

from __future__ import annotations

from hypothesis import strategies as st

from hookledger.testing.plan import Plan, Then

_THEN = [Then.NEXT, Then.NEXT, Then.NEXT, Then.NEXT, *Then, Then.IN_STEP, Then.IN_STEP]
"""Two of three arrivals are followed by another one, and two workers often run at the same time."""


def plans(deliveries: int, most_deaths: int) -> st.SearchStrategy[Plan]:
    """Sequences of so many deliveries: some of them, in any order, with repeats, and what happens in between.

    Args:
        deliveries: how many there are.
        most_deaths: of workers in one sequence.
    """
    step = st.tuples(st.integers(0, deliveries - 1), st.sampled_from(_THEN))
    steps = st.lists(step, min_size=1, max_size=max(6, 2 * deliveries))
    apart = st.sampled_from([False, False, False, True])
    return st.builds(lambda chosen, days: Plan(tuple(chosen), days).with_deaths(most_deaths), steps, apart)
