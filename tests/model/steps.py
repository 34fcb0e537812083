"""Every step that can be taken from a state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

from tests.model.faults import faults
from tests.model.outcomes import BURIED, given_back, runs, written
from tests.model.state import (
    PENDING,
    At,
    Claim,
    Job,
    Kind,
    Row,
    Setting,
    State,
    Step,
    Worker,
    Writes,
)
from tests.model.transactions import committed, locked, next_job, ours, put

WORK = (Kind.TOGETHER, Kind.ALONE)


def steps(setting: Setting, state: State) -> Iterator[Step]:
    """All of them, those of the workers and those that happen to them."""
    for index, worker in enumerate(state.workers):
        yield from _of_worker(setting, state, index, worker)
    yield from faults(setting, state)


def _of_worker(setting: Setting, state: State, index: int, worker: Worker) -> Iterator[Step]:
    match worker.at:
        case At.IDLE:
            seen = tuple(d for d, row in enumerate(state.rows) if row.place == PENDING and row.due)
            if seen:
                yield Step("look", index, seen, put(state, index, worker._replace(at=At.LOOKED, rest=seen)))
        case At.LOOKED:
            yield from _take(setting, state, index, worker)
        case At.BEGUN:
            yield from _hold(setting, state, index, worker)
        case At.MISSED:
            yield from _wait(setting, state, index, worker, "wait")
        case At.WAITING:
            if not locked(state, worker.rest[0], index):
                yield from _wait(setting, state, index, worker, "woken")
        case At.HELD:
            yield from _work(setting, state, index, worker)
        case At.LOCKED:
            yield from _run(setting, state, index, worker)
        case At.WRITTEN:
            yield Step("commit", index, (), committed(setting, state, index))


def _take(setting: Setting, state: State, index: int, worker: Worker) -> Iterator[Step]:
    """The claim locks what it saw, looks again at what it has locked, and writes. In which order is up to the due
    times, which the model does not have."""
    free = [d for d in worker.rest if not locked(state, d, index)]
    most = setting.batch if setting.rules.materialized else len(free)
    orders = permutations(free) if len(free) > most else [tuple(free)]
    for order in orders:
        held: list[int] = []
        claims: list[Claim] = []
        for d in order:
            if len(claims) == most:
                break
            row = state.rows[d]
            if row.place != PENDING:
                continue
            held.append(d)
            if row.due:
                crashed = row.attempts > 0 and not row.error
                charged = 0 if crashed and setting.rules.crashed_charged_alone else 1
                claims.append(Claim(d, row.attempts + charged, row.error, crashed, row.revisited))
        rows = tuple(
            (c.delivery, Row(PENDING, c.attempts, False, not setting.rules.claims_write_due, True))
            for c in sorted(claims)
        )
        after = worker._replace(
            at=At.WRITTEN,
            job=Job(Kind.CLAIM, tuple(sorted(claims))),
            taken=tuple(sorted(c for c in claims if not c.crashed)),
            held=tuple(sorted(held)),
            rest=(),
            writes=Writes(rows),
        )
        flaw = "a claim took more than its batch" if len(claims) > setting.batch else ""
        yield Step("take", index, order, put(state, index, after)._replace(flaw=flaw))


def _hold(setting: Setting, state: State, index: int, worker: Worker) -> Iterator[Step]:
    held, rest = [], []
    for claim in worker.job.claims:
        d = claim.delivery
        free = not setting.rules.hold_locks or not locked(state, d, index)
        (held if free and ours(setting, state, claim) else rest).append(d)
    at = At.MISSED if rest and setting.rules.hold_waits else At.HELD
    after = worker._replace(at=at, held=tuple(held), rest=tuple(rest) if at is At.MISSED else (), before=tuple(held))
    yield Step("hold", index, tuple(held), put(state, index, after))
    if setting.stops and worker.job.kind in (Kind.CHARGE, Kind.BURY):
        left = (*worker.job.claims, *(claim for job in worker.later for claim in job.claims))
        back = worker._replace(job=Job(Kind.BACK, tuple(sorted(left)), 0), later=())
        yield Step("stop", index, (), put(state, index, back))


def _wait(setting: Setting, state: State, index: int, worker: Worker, name: str) -> Iterator[Step]:
    """Lock the rows missed, in the order of their ids, until one is locked by another."""
    claims = {claim.delivery: claim for claim in worker.job.claims}
    rest, held = list(worker.rest), list(worker.held)
    if name == "wait":
        rest = [d for d in rest if ours(setting, state, claims[d])]
    while rest and not locked(state, rest[0], index):
        d = rest.pop(0)
        if ours(setting, state, claims[d]):
            held.append(d)
    at = At.WAITING if rest else At.HELD
    after = worker._replace(at=at, held=tuple(sorted(held)), rest=tuple(rest))
    if at is At.HELD:
        after = after._replace(before=())
    yield Step(name, index, tuple(sorted(held)), put(state, index, after))


def held_claims(worker: Worker) -> tuple[Claim, ...]:
    """The claims of the transaction that it holds."""
    return tuple(claim for claim in worker.job.claims if claim.delivery in worker.held)


def _work(setting: Setting, state: State, index: int, worker: Worker) -> Iterator[Step]:
    """What follows a hold, by what the transaction is for."""
    claims = held_claims(worker)
    if not claims:
        yield Step("commit", index, (), committed(setting, state, index))
    elif worker.job.kind in WORK:
        if setting.versions and setting.rules.watermark_locked and mark_is_locked(state, index):
            return
        after = worker._replace(at=At.LOCKED, read=state.mark, before=())
        yield Step("lock", index, (), put(state, index, after))
    elif worker.job.kind is Kind.CHARGE:
        yield from _charge(setting, state, index, worker, claims[0])
    elif worker.job.kind is Kind.BURY:
        yield _wrote("bury", state, index, worker, Writes(((claims[0].delivery, BURIED),)))
    else:
        rows = tuple(
            (claim.delivery, given_back(claim, worker.job.refund))
            for claim in claims
            if state.rows[claim.delivery].attempts == claim.attempts
        )
        yield _wrote("give back", state, index, worker, Writes(rows))


def mark_is_locked(state: State, index: int) -> bool:
    """Whether another worker's transaction has the row of the resource."""
    return any(
        worker.job.kind in WORK and (worker.at in (At.LOCKED, At.WRITTEN) or (worker.at is At.GONE and worker.read >= 0))
        for other, worker in enumerate(state.workers)
        if other != index
    )


def _charge(setting: Setting, state: State, index: int, worker: Worker, claim: Claim) -> Iterator[Step]:
    row = state.rows[claim.delivery]
    if row.error or row.attempts != claim.attempts:
        yield _wrote("charge", state, index, worker._replace(job=worker.job._replace(claims=())), Writes())
        return
    charged = claim._replace(attempts=claim.attempts + 1, error=False, crashed=False, revisited=True)
    writes = Writes(((claim.delivery, Row(PENDING, charged.attempts, False, not setting.rules.claims_write_due, True)),))
    after = worker._replace(job=worker.job._replace(claims=(charged,)))
    if setting.rules.taken_before_commit:
        after = after._replace(taken=tuple(sorted((*after.taken, charged))))
    if not setting.rules.charge_commits_first:
        after = after._replace(job=Job(Kind.ALONE, (charged,)), at=At.LOCKED, read=state.mark)
        yield Step("charge", index, (), put(state, index, after))
        return
    yield _wrote("charge", state, index, after, writes)


def _wrote(name: str, state: State, index: int, worker: Worker, writes: Writes) -> Step:
    after = worker._replace(at=At.WRITTEN, writes=writes, before=())
    return Step(name, index, (), put(state, index, after))


def _run(setting: Setting, state: State, index: int, worker: Worker) -> Iterator[Step]:
    """Run the handlers and write what came of it; the process may end in one of them."""
    claims = held_claims(worker)
    alone = worker.job.kind is Kind.ALONE
    known = [state.ledger[c.delivery] if c.revisited or alone else 0 for c in claims]
    for number, results in enumerate(runs(setting, claims, known, worker.read)):
        if results is None:
            gone = Worker(at=At.GONE, job=worker.job, held=worker.held, read=0)
            yield Step("die", index, (number,), put(state, index, gone))
            continue
        writes = written(setting, claims, known, results)
        if any(effect.ledger & state.ledger[effect.delivery] for effect in writes.effects):
            # The key of the effects refuses the batch: its deliveries go alone, and are looked up.
            after: Any = next_job(worker, (*alone_each(worker.job), *worker.later), worker.taken)
            flaw = "an effect that was looked up was there" if alone else ""
            yield Step("refused", index, (number,), put(state, index, after)._replace(flaw=flaw))
            continue
        step = _wrote("run", state, index, worker, writes)
        if not setting.rules.effects_inside:
            step = step._replace(state=_done_at_once(step.state, writes))
        yield step._replace(detail=(number,))


def _done_at_once(state: State, writes: Writes) -> State:
    done = [list(counts) for counts in state.done]
    for effect in writes.effects:
        for handler in range(len(done[effect.delivery])):
            done[effect.delivery][handler] += effect.done >> handler & 1
    return state._replace(done=tuple(tuple(counts) for counts in done))


def alone_each(job: Job) -> tuple[Job, ...]:
    """Each delivery of a batch in a transaction of its own."""
    return tuple(Job(Kind.ALONE, (claim,)) for claim in job.claims)
