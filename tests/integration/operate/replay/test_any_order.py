"""Whatever is replayed, in whatever order and how often: the end is a function of the set of events (D11)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from hookledger import Delivery, Inbox, Reject
from hookledger.operate.filters import Filter
from hookledger.operate.replay import Selection
from tests.outcomes import SHOP, document, inbox_of_shop
from tests.replaying import Shop

EXAMPLES = 12


@dataclass(frozen=True)
class Fact:
    """One event: a snapshot of one of two things, which is also added up."""

    resource: str
    version: int
    value: int
    deleted: bool
    broken: bool


facts = st.builds(
    Fact,
    resource=st.sampled_from(["a", "b"]),
    version=st.integers(1, 4),
    value=st.integers(1, 100),
    deleted=st.sampled_from([False, False, True]),
    broken=st.booleans(),
)
numbers = st.lists(st.integers(0, 11), max_size=6)
# What is done: events arrive, a worker works, some are replayed, the handlers are mended.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.integers(1, 4)),
        st.tuples(st.just("work"), st.sampled_from([1, 3, 200])),
        st.tuples(st.sampled_from(["dead", "settled"]), numbers),
        st.tuples(st.just("mend"), st.just(0)),
    ),
    max_size=8,
)


def test_a_replay_of_any_history_in_any_order_ends_in_the_same_state(shop: Shop) -> None:
    counter = itertools.count()
    mended: set[str] = set()

    def fail(delivery: Delivery) -> None:
        if delivery.data["broken"] and delivery.data["name"] not in mended:
            raise Reject("broken")

    def save(delivery: Delivery, tx: Connection) -> dict[str, int]:
        fail(delivery)
        return {"value": delivery.data["value"]}

    def add(delivery: Delivery, tx: Connection) -> dict[str, int]:
        fail(delivery)
        return {"total": delivery.data["value"]}

    inbox: Inbox = inbox_of_shop()
    inbox.snapshot(SHOP, "fact", name="save", deleted=lambda delivery: bool(delivery.data["deleted"]))(save)
    inbox.accumulate(SHOP, "fact", name="add")(add)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(facts, min_size=3, max_size=12), steps, st.randoms(use_true_random=False))
    def run(events: list[Fact], done: list[tuple[str, object]], chance: object) -> None:
        name = f"x{next(counter)}"
        order = list(range(len(events)))
        chance.shuffle(order)  # type: ignore[attr-defined]
        ids: dict[int, int] = {}

        def arrive(count: int) -> None:
            for number in [one for one in order if one not in ids][:count]:
                fact = events[number]
                (ids[number],) = shop.record(
                    document(
                        f"{name}-{number}",
                        f"{name}-{fact.resource}",
                        fact.version,
                        type="fact",
                        name=name,
                        value=fact.value,
                        deleted=fact.deleted,
                        broken=fact.broken,
                    )
                )

        def replay(wanted: list[int], *, settled: bool) -> None:
            chosen = tuple([ids[number] for number in wanted if number in ids])
            shop.replay(Selection(Filter(ids=chosen), include_settled=settled))

        for what, given_ in done:
            if what == "arrive":
                arrive(int(str(given_)))
            elif what == "work":
                shop.work(inbox, batch=given_)
            elif what == "mend":
                mended.add(name)
            else:
                assert isinstance(given_, list)
                replay(given_, settled=what == "settled")
        arrive(len(events))
        shop.work(inbox)
        mended.add(name)
        replay(order, settled=True)
        shop.work(inbox)
        expect(shop, name, events, ids)

    run()
    shop.check()
    assert shop.dead() == shop.pending() == {}


def expect(shop: Shop, name: str, events: list[Fact], ids: dict[int, int]) -> None:
    """Compare with what follows from the events and their ids alone."""
    saved, totals = shop.states("save"), shop.states("add")
    for resource in {fact.resource for fact in events}:
        of_resource = [number for number, fact in enumerate(events) if fact.resource == resource]
        winner = max(of_resource, key=lambda number: (events[number].version, ids[number]))
        fact = events[winner]
        expected = ((fact.version,), fact.deleted, None if fact.deleted else {"value": fact.value})
        assert saved[f"{name}-{resource}"] == expected
        total = sum(events[number].value for number in of_resource)
        assert totals[f"{name}-{resource}"].state == {"total": total}
