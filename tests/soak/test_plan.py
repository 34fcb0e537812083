"""The plan of the soak: the same from the same seed, and with every fault in it (D1, D6)."""

from __future__ import annotations

from tests.soak.plan import POISON, Fault, Manner, make_plan


def test_a_seed_gives_one_plan() -> None:
    assert make_plan(7, 60) == make_plan(7, 60)
    assert make_plan(7, 60) != make_plan(8, 60)


def test_a_minute_has_everything() -> None:
    plan = make_plan(1, 60)
    assert {planned.fault for planned in plan.faults} == set(Fault)
    assert {sending.manner for sending in plan.sendings} == set(Manner)
    assert any(sending.event.type == POISON for sending in plan.sendings)
    versions = [(sending.event.resource, sending.event.version) for sending in plan.sendings]
    assert len(set(versions)) < len(versions)
