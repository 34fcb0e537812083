"""What is explored, and what is left out of the protocol to see that it is missed."""

from __future__ import annotations

from tests.model.state import Faults, Rules, Setting

GOOD, FAILS, POISON = ("good",), ("fails",), ("poison",)

SETTINGS = (
    Setting(
        "one delivery that may fail; a crash, a lost connection and a restart",
        (FAILS,),
        faults=Faults(crashes=1, losses=1, restarts=1),
    ),
    Setting(
        "one delivery that may fail; a lost connection, and a revival",
        (FAILS,),
        faults=Faults(losses=1, revivals=1),
    ),
    Setting("one delivery that may fail; stalls, a crash, SIGTERM", (FAILS,), stops=True, faults=Faults(1, stalls=1)),
    Setting("one harmless delivery; lost connections and a restart", (GOOD,), faults=Faults(losses=2, restarts=1)),
    Setting("two harmless deliveries; a crash and a lost connection", (GOOD, GOOD), faults=Faults(1, 1)),
    Setting("two harmless deliveries; a stall", (GOOD, GOOD), faults=Faults(stalls=1)),
    Setting("two harmless deliveries, claimed one by one; a crash", (GOOD, GOOD), batch=1, faults=Faults(1)),
    Setting("poison beside a harmless delivery", (POISON, GOOD), max_attempts=3),
    Setting("one that is poison; lost connections", (POISON,), faults=Faults(losses=2)),
    Setting("two that are poison", (POISON, POISON)),
    Setting(
        "two handlers, of which one may fail; a crash, a stall, SIGTERM",
        (("good", "fails"),),
        stops=True,
        faults=Faults(1, stalls=1),
    ),
    Setting("two snapshots of a resource; a lost connection", (FAILS, FAILS), versions=(2, 1), faults=Faults(losses=1)),
    Setting("two snapshots, claimed one by one; a crash", (FAILS, GOOD), versions=(1, 2), batch=1, faults=Faults(1)),
    Setting("a deadlock within a batch", (GOOD, FAILS), faults=Faults(conflicts=2)),
    Setting("three workers, one delivery; a crash and a lost connection", (FAILS,), workers=3, faults=Faults(1, 1)),
    Setting("three workers, one that is poison; a stall", (POISON,), workers=3, faults=Faults(stalls=1)),
    Setting("three workers, two deliveries claimed one by one", (GOOD, FAILS), workers=3, batch=1),
)

MUTATIONS = (
    Setting("hold does not look at the attempts", (FAILS,), faults=Faults(stalls=1), rules=Rules(fence=False)),
    Setting(
        "hold does not look at the error, so that a claim which gave back and was repeated is taken for the first",
        (FAILS,),
        faults=Faults(losses=1),
        rules=Rules(fence_sees_error=False),
    ),
    Setting("hold locks nothing", (FAILS,), faults=Faults(stalls=1), rules=Rules(hold_locks=False)),
    Setting("hold skips what is locked and does not wait", (GOOD,), rules=Rules(hold_waits=False)),
    Setting(
        "hold keeps the lock of what changed while it waited",
        (GOOD, GOOD),
        faults=Faults(stalls=1),
        rules=Rules(overtaken_let_go=False),
    ),
    Setting("the claim's select is not materialized", (GOOD, GOOD), batch=1, rules=Rules(materialized=False)),
    Setting(
        "the handler's writes are not in the transaction",
        (GOOD,),
        faults=Faults(losses=1),
        rules=Rules(effects_inside=False),
    ),
    Setting("a claim does not write the due time", (GOOD,), rules=Rules(claims_write_due=False)),
    Setting(
        "a claim charges those that crashed together",
        (POISON, GOOD),
        rules=Rules(crashed_charged_alone=False),
    ),
    Setting("a charge is not committed before the run", (POISON,), rules=Rules(charge_commits_first=False)),
    Setting(
        "what a charge took is noted after its commit only",
        (GOOD,),
        faults=Faults(crashes=1, losses=1),
        rules=Rules(taken_before_commit=False),
    ),
    Setting(
        "the watermark is read without a lock",
        (FAILS, FAILS),
        versions=(1, 2),
        batch=1,
        rules=Rules(watermark_locked=False),
    ),
)
"""Each must be caught."""
