"""What must hold in every state."""

from __future__ import annotations

from tests.model.state import DEAD, PENDING, SETTLED, At, Faults, Kind, Setting, State

WORK = (Kind.TOGETHER, Kind.ALONE)
RUNS = (At.LOCKED, At.WRITTEN)


def flaw_of(setting: Setting, state: State) -> str:
    """Which property does not hold, in words; empty if all do."""
    if state.flaw:
        return state.flaw
    if any(count > 1 for counts in state.done for count in counts):
        return "a handler's effect was committed twice"
    return _lost(setting, state) or _runs(setting, state) or _attempts(setting, state)


def _lost(setting: Setting, state: State) -> str:
    for d, row in enumerate(state.rows):
        handlers = setting.deliveries[d]
        if row.place == SETTLED:
            if state.ledger[d] != (1 << len(handlers)) - 1:
                return "a delivery is settled without all of its outcomes"
            if not setting.versions and any(count != 1 for count in state.done[d]):
                return "a delivery is settled and its effect is lost"
        if setting.rules.effects_inside and any(
            count and not state.ledger[d] >> h & 1 for h, count in enumerate(state.done[d])
        ):
            return "an effect is not in the ledger"
    settled = [d for d, row in enumerate(state.rows) if row.place == SETTLED]
    if setting.versions and settled and state.mark < max(setting.versions[d] for d in settled):
        return "the newest snapshot was settled and its watermark is not there"
    return ""


def _runs(setting: Setting, state: State) -> str:
    running: set[int] = set()
    for worker in state.workers:
        if worker.at not in RUNS or worker.job.kind not in WORK:
            continue
        for claim in worker.job.claims:
            if claim.delivery not in worker.held:
                continue
            if claim.delivery in running:
                return "two workers run a delivery at a time"
            running.add(claim.delivery)
            row = state.rows[claim.delivery]
            if row.place != PENDING or row.attempts != claim.attempts or row.attempts < 1 or row.error:
                return "a delivery is run without being charged, so that a crash of it would not count"
    return ""


def _attempts(setting: Setting, state: State) -> str:
    used: Faults = Faults(*(before - left for before, left in zip(setting.faults, state.left, strict=True)))
    for d, row in enumerate(state.rows):
        words = setting.deliveries[d]
        if row.attempts > setting.enough and setting.rules.crashed_charged_alone:
            return "more attempts were charged than there may be"
        if row.place == SETTLED and "poison" in words:
            return "a delivery that ends the process was settled"
        if row.place == DEAD and set(words) == {"good"} and used.crashes + used.stalls < setting.enough:
            return "a harmless delivery became a dead letter"
    return ""


def is_final(state: State) -> bool:
    """Whether all is settled or dead, and nobody has anything to do."""
    return all(row.place != PENDING for row in state.rows) and all(worker.at is At.IDLE for worker in state.workers)
