"""Every step that can be taken from a state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
RUNS = (At.LOCKED, At.WRITTEN)


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
        case At.OVERTAKEN:
            yield from _let_go(state, index, worker)
        case At.LET_GO:
            yield from _again(setting, state, index, worker)
        case At.HELD:
            yield from _work(setting, state, index, worker)
        case At.LOCKED:
            yield from _run(setting, state, index, worker)
        case At.WRITTEN:
            yield Step("commit", index, (), committed(setting, state, index))


def _take(setting: Setting, state: State, index: int, worker: Worker) -> Iterator[Step]:
    """The claim locks what it saw, looks again at what it has locked, and writes. In which order is up to the due
    times, which the model does not have; and so is whether a row that was changed meanwhile, and is due, was so
    before the claim began."""
    free = [d for d in sorted((*worker.rest, *worker.before)) if not locked(state, d, index)]
    most = setting.batch if setting.rules.materialized else len(free)
    for order in permutations(free) if len(free) > most else [tuple(free)]:
        unsure = [d for d in order if d in worker.before and state.rows[d].due]
        for chosen in range(1 << len(unsure)):
            late = {d for number, d in enumerate(unsure) if chosen >> number & 1}
            yield _taken(setting, state, index, worker, order, {*worker.rest, *late}, most)


def _taken(
    setting: Setting, state: State, index: int, worker: Worker, order: Sequence[int], due: set[int], most: int
) -> Step:
    held: list[int] = []
    claims: list[Claim] = []
    for d in order:
        if len(claims) == most:
            break
        held.append(d)
        row = state.rows[d]
        if d in due:
            crashed = row.attempts > 0 and not row.error
            charged = 0 if crashed and setting.rules.crashed_charged_alone else 1
            claims.append(Claim(d, row.attempts + charged, row.error, crashed, row.revisited))
    claims.sort()
    write_due = setting.rules.claims_write_due
    rows = tuple((c.delivery, Row(PENDING, c.attempts, False, not write_due, True)) for c in claims)
    after = worker._replace(
        at=At.WRITTEN,
        job=Job(Kind.CLAIM, tuple(claims)),
        taken=tuple(claims),
        held=tuple(sorted(held)),
        rest=(),
        before=(),
        writes=Writes(rows),
    )
    flaw = "a claim took more than its batch" if len(claims) > setting.batch else ""
    return Step("take", index, tuple(order), put(state, index, after)._replace(flaw=flaw))


def _hold(setting: Setting, state: State, index: int, worker: Worker) -> Iterator[Step]:
    held: list[int] = []
    rest: list[int] = []
    for claim in worker.job.claims:
        d = claim.delivery
        free = not setting.rules.hold_locks or not locked(state, d, index)
        (held if free and ours(setting, state, claim) else rest).append(d)
    rest = sorted({d for d in rest if d not in held})
    at = At.MISSED if rest and setting.rules.hold_waits else At.HELD
    after = worker._replace(at=at, held=tuple(held), rest=tuple(rest) if at is At.MISSED else (), before=tuple(held))
    yield Step("hold", index, tuple(held), put(state, index, after))
    if setting.stops and worker.job.kind in (Kind.CHARGE, Kind.BURY):
        left = (*worker.job.claims, *(claim for job in worker.later for claim in job.claims))
        back = worker._replace(job=Job(Kind.BACK, tuple(sorted(left))), later=())
        yield Step("stop", index, (), put(state, index, back))


def _wait(setting: Setting, state: State, index: int, worker: Worker, name: str) -> Iterator[Step]:
    """Lock the rows missed, in the order of their ids, until one is locked by another. What changed while it was
    waited for is locked too, and is not ours any more."""
    missed = [claim for claim in worker.job.claims if claim.delivery not in worker.before]
    rest, held, kept = list(worker.rest), list(worker.held), list(worker.kept)
    if name == "wait":
        rest = [d for d in rest if _any_is_ours(setting, state, missed, d)]
    while rest and not locked(state, rest[0], index):
        d = rest.pop(0)
        if _any_is_ours(setting, state, missed, d):
            held.append(d)
        elif state.rows[d].place == PENDING:
            kept.append(d)
    after = worker._replace(held=tuple(sorted(held)), kept=tuple(sorted(kept)), rest=tuple(rest))
    if rest:
        after = after._replace(at=At.WAITING)
    elif len(held) - len(worker.before) == len(missed) or not setting.rules.overtaken_let_go:
        after = after._replace(at=At.HELD, before=())
    else:
        after = after._replace(at=At.OVERTAKEN)
    yield Step(name, index, tuple(sorted(held)), put(state, index, after))


def _any_is_ours(setting: Setting, state: State, claims: Sequence[Claim], delivery: int) -> bool:
    """There are two claims of a delivery where it is not known whether its charge was committed."""
    return any(claim.delivery == delivery and ours(setting, state, claim) for claim in claims)


def _let_go(state: State, index: int, worker: Worker) -> Iterator[Step]:
    """The savepoint of the wait is rolled back, which releases what it has locked."""
    got = tuple(d for d in worker.held if d not in worker.before)
    at = At.LET_GO if got else At.HELD
    after = worker._replace(at=at, held=worker.before, kept=(), rest=got, before=())
    yield Step("let go", index, (), put(state, index, after))


def _again(setting: Setting, state: State, index: int, worker: Worker) -> Iterator[Step]:
    """And what it had got by then is held once more."""
    free = [d for d in worker.rest if not locked(state, d, index)]
    got = [d for d in free if _any_is_ours(setting, state, worker.job.claims, d)]
    held = tuple(sorted((*worker.held, *got)))
    yield Step("again", index, held, put(state, index, worker._replace(at=At.HELD, held=held, rest=())))


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
            (claim.delivery, given_back(claim, 0 if claim.crashed else worker.job.refund))
            for claim in claims
            if state.rows[claim.delivery].attempts == claim.attempts
        )
        yield _wrote("give back", state, index, worker, Writes(rows))


def mark_is_locked(state: State, index: int) -> bool:
    """Whether another worker's transaction has the row of the resource."""
    return any(
        worker.job.kind in WORK
        and (worker.at in (At.LOCKED, At.WRITTEN) or (worker.at is At.GONE and worker.read >= 0))
        for other, worker in enumerate(state.workers)
        if other != index
    )


def _charge(setting: Setting, state: State, index: int, worker: Worker, claim: Claim) -> Iterator[Step]:
    row = state.rows[claim.delivery]
    if row.error or row.attempts != claim.attempts:
        yield _wrote("charge", state, index, worker, Writes())
        return
    charged = claim._replace(attempts=claim.attempts + 1, error=False, crashed=False, revisited=True)
    after = worker._replace(job=worker.job._replace(claims=(charged,)))
    if setting.rules.taken_before_commit:
        # What it took before is forgotten with the answer to the commit.
        after = after._replace(taken=tuple(sorted((*after.taken, charged))))
    if not setting.rules.charge_commits_first:
        after = after._replace(job=Job(Kind.ALONE, (charged,)), at=At.LOCKED, read=state.mark)
        yield Step("charge", index, (), put(state, index, after))
        return
    new = Row(PENDING, charged.attempts, False, not setting.rules.claims_write_due, True)
    yield _wrote("charge", state, index, after, Writes(((claim.delivery, new),)))


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
            gone = Worker(at=At.GONE, job=worker.job, held=(*worker.held, *worker.kept), read=0)
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
