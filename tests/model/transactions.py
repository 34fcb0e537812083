"""Beginning, committing and rolling back in the model."""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.state import PENDING, UNMOVED, At, Claim, Job, Kind, Row, Setting, State, Worker, Writes

NO_JOB = Job()


def put(state: State, index: int, worker: Worker) -> State:
    """The state with another worker in the place."""
    workers = state.workers
    return state._replace(workers=(*workers[:index], worker, *workers[index + 1 :]))


def locked(state: State, delivery: int, index: int) -> bool:
    """Whether another worker's transaction has locked the row of pending."""
    return any(
        delivery in worker.held or delivery in worker.kept
        for other, worker in enumerate(state.workers)
        if other != index
    )


def ours(setting: Setting, state: State, claim: Claim) -> bool:
    """Whether the row is as our claim left it: the condition of every hold."""
    row = state.rows[claim.delivery]
    if row.place != PENDING:
        return False
    if not setting.rules.fence:
        return True
    return row.attempts == claim.attempts and not (row.error and setting.rules.fence_sees_error)


def next_job(worker: Worker, later: Sequence[Job], taken: Sequence[Claim]) -> Worker:
    """The worker with its transaction over, at the beginning of the next one."""
    left = tuple(job for job in later if job.claims)
    if not left:
        return Worker(taken=tuple(taken))
    return Worker(at=At.BEGUN, job=left[0], later=left[1:], taken=tuple(taken))


def committed(setting: Setting, state: State, index: int) -> State:
    """The transaction of a worker is committed, and the worker knows."""
    worker = state.workers[index]
    state = published(setting, state, index)
    job, taken, later = worker.job, worker.taken, worker.later
    ids = {claim.delivery for claim in job.claims}
    match job.kind:
        case Kind.CLAIM:
            healthy = tuple(claim for claim in job.claims if not claim.crashed)
            crashed = sorted((claim for claim in job.claims if claim.crashed), key=lambda c: (c.attempts, c.delivery))
            later = (Job(Kind.TOGETHER, healthy), *(_after_crash(setting, claim) for claim in crashed))
        case Kind.CHARGE:
            if not worker.writes.rows:
                taken = tuple(claim for claim in taken if claim.delivery not in ids)
            else:
                taken = instead(taken, job.claims[0])
                later = (Job(Kind.ALONE, job.claims), *later)
        case Kind.REFUND:
            taken = ()
        case _:
            taken = tuple(claim for claim in taken if claim.delivery not in ids)
    return put(state, index, next_job(worker, later, taken))


def _after_crash(setting: Setting, claim: Claim) -> Job:
    if not setting.rules.crashed_charged_alone:
        enough = claim.attempts > setting.enough
        return Job(Kind.BURY if enough else Kind.ALONE, (claim._replace(crashed=False),))
    return Job(Kind.BURY if claim.attempts >= setting.enough else Kind.CHARGE, (claim,))


def published(setting: Setting, state: State, index: int) -> State:
    """What a worker has written becomes visible. Only the commit of a claim does not wait for the disk; that of
    another writes the claims before it to the disk too, since there is one log."""
    worker = state.workers[index]
    writes = worker.writes
    rows, ledger, done = list(state.rows), list(state.ledger), [list(counts) for counts in state.done]
    undo: list[Row | None] = list(state.undo) if worker.job.kind is Kind.CLAIM else [None] * len(rows)
    for delivery, row in writes.rows:
        if worker.job.kind is Kind.CLAIM and undo[delivery] is None:
            undo[delivery] = rows[delivery]
        rows[delivery] = row
    flaw = state.flaw
    for effect in writes.effects:
        ledger[effect.delivery] |= effect.ledger
        if setting.rules.effects_inside:
            for handler in range(len(done[effect.delivery])):
                done[effect.delivery][handler] += effect.done >> handler & 1
    mark = state.mark if writes.mark == UNMOVED else writes.mark
    if mark < state.mark:
        flaw = "the watermark moved back"
    return outdated(state, writes.rows, index)._replace(
        rows=tuple(rows),
        ledger=tuple(ledger),
        done=tuple(tuple(counts) for counts in done),
        mark=mark,
        undo=tuple(undo),
        flaw=flaw,
    )


def outdated(state: State, written: Sequence[tuple[int, Row]], index: int = -1) -> State:
    """A claim under way that saw these rows due: when it locks them it looks at their due time again, and leaves
    those that became due since it began, locked; and finds nothing where a row is gone, even if a new one has come."""
    workers = list(state.workers)
    for other, worker in enumerate(workers):
        if worker.at is At.LOOKED and other != index:
            rest, before = set(worker.rest), set(worker.before)
            for delivery, row in written:
                if delivery in rest:
                    rest.discard(delivery)
                    before.add(delivery)
                if row.place != PENDING:
                    before.discard(delivery)
            workers[other] = worker._replace(rest=tuple(sorted(rest)), before=tuple(sorted(before)))
    return state._replace(workers=tuple(workers))


def instead(taken: Sequence[Claim], charged: Claim) -> tuple[Claim, ...]:
    """What is taken, with a claim in place of an earlier one of its delivery."""
    return tuple(sorted((*(claim for claim in taken if claim.delivery != charged.delivery), charged)))


def interrupted(worker: Worker) -> Worker:
    """The worker after its connection was lost: it gives back what it has taken, before anything else."""
    if not worker.taken:
        return Worker()
    return Worker(at=At.BEGUN, job=Job(Kind.REFUND, worker.taken, 1), taken=worker.taken)


def rolled_back(worker: Worker) -> Worker:
    """The worker without what its transaction wrote."""
    return worker._replace(writes=Writes(), held=())
