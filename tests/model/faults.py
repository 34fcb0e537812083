"""What happens to workers: their ends, lost connections, restarts, and time."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.state import DEAD, PENDING, At, Faults, Job, Kind, Row, Setting, State, Step, Worker
from tests.model.transactions import interrupted, locked, next_job, ours, published, put

RELEASES = ("lost", "unheard", "conflict", "restart")


def faults(setting: Setting, state: State) -> Iterator[Step]:
    """Those that may still come, and what must come: time, and the sender."""
    left = state.left
    if not (left.losses or left.conflicts or left.restarts):
        yield from _faults(setting, state)
        return
    exposed = _exposed(state)
    for step in _faults(setting, state):
        # Whose handler took longer than until its due time, and then lost its hold, is in the place of a stalled one.
        stalls = len(_exposed(step.state) - exposed) if step.name in RELEASES else 0
        if stalls == 0:
            yield step
        elif stalls <= state.left.stalls:
            spent = step.state.left._replace(stalls=left.stalls - stalls)
            yield step._replace(state=step.state._replace(left=spent), fault=True)


def _exposed(state: State) -> set[tuple[int, int]]:
    """Deliveries that are due though a worker that lives has charged them, and that it does not hold."""
    return {
        (claim.delivery, claim.attempts)
        for worker in state.workers
        for claim in worker.taken
        if worker.at is not At.WRITTEN or worker.job.kind not in (Kind.CLAIM, Kind.CHARGE)
        if not claim.crashed
        and claim.delivery not in worker.held
        and (row := state.rows[claim.delivery]).due
        and row.place == PENDING
        and row.attempts == claim.attempts
    }


def _faults(setting: Setting, state: State) -> Iterator[Step]:
    for index, worker in enumerate(state.workers):
        yield from _of_worker(setting, state, index, worker)
    if state.left.restarts:
        yield from _restart(state)
    yield from _due(state)
    if state.left.revivals:
        for d, row in enumerate(state.rows):
            if row.place == DEAD:
                rows = (*state.rows[:d], Row(PENDING, 0, False, True, True), *state.rows[d + 1 :])
                after = state._replace(rows=rows, undo=(None,) * len(rows))
                yield Step("revive", -1, (d,), _spent(after, "revivals"), fault=True)


def _spent(state: State, name: str) -> State:
    left: Faults = state.left._replace(**{name: getattr(state.left, name) - 1})
    return state._replace(left=left)


def _of_worker(setting: Setting, state: State, index: int, worker: Worker) -> Iterator[Step]:
    if worker.at is At.GONE:
        yield Step("released", index, (), put(state, index, Worker()))
        return
    if worker.at is At.WAITING and locked(state, worker.rest[0], index):
        after = _timed_out(setting, state, index, worker)
        if _is_worked_on(state, worker.rest[0], index):
            yield Step("timeout", index, (), after)
        elif state.left.stalls:
            yield Step("timeout", index, (), _spent(after, "stalls"), fault=True)
    if worker.at is At.IDLE:
        return
    if state.left.crashes:
        gone = Worker(at=At.GONE, job=worker.job, held=(*worker.held, *worker.kept), read=_has_mark(worker))
        after = put(state, index, gone if gone.held else Worker())
        yield Step("crash", index, (), _spent(after, "crashes"), fault=True)
    if state.left.losses:
        after = put(state, index, interrupted(worker))
        yield Step("lost", index, (), _spent(after, "losses"), fault=True)
        if worker.at is At.WRITTEN:
            after = put(published(setting, state, index), index, interrupted(worker))
            yield Step("unheard", index, (), _spent(after, "losses"), fault=True)
    if state.left.conflicts and worker.at is At.LOCKED:
        alone: tuple[Job, ...] = tuple(Job(Kind.ALONE, (claim,)) for claim in worker.job.claims)
        if worker.job.kind is Kind.ALONE:
            alone = (Job(Kind.BACK, worker.job.claims, 1),)
        after = put(state, index, next_job(worker, (*alone, *worker.later), worker.taken))
        yield Step("conflict", index, (), _spent(after, "conflicts"), fault=True)


def _is_worked_on(state: State, delivery: int, index: int) -> bool:
    """Whether a row is locked by a transaction in which handlers run, which may take any time."""
    return any(
        (delivery in worker.held or delivery in worker.kept)
        and worker.job.kind in (Kind.TOGETHER, Kind.ALONE)
        and worker.at in (At.LOCKED, At.WRITTEN)
        for other, worker in enumerate(state.workers)
        if other != index
    )


def _has_mark(worker: Worker) -> int:
    """In a process that is gone: whether its transaction has the row of the resource, too."""
    return 0 if worker.at in (At.LOCKED, At.WRITTEN) else -1


def _timed_out(setting: Setting, state: State, index: int, worker: Worker) -> State:
    """The savepoint of the wait is rolled back; what is free now is held without waiting."""
    held = list(worker.before)
    for claim in worker.job.claims:
        d = claim.delivery
        if d not in held and ours(setting, state, claim) and not locked(state, d, index):
            held.append(d)
    return put(state, index, worker._replace(at=At.HELD, held=tuple(sorted(held)), kept=(), rest=(), before=()))


def _restart(state: State) -> Iterator[Step]:
    """All transactions end, and of the claims that only memory had some are undone."""
    workers = tuple(
        Worker() if worker.at is At.GONE else worker if worker.at is At.IDLE else interrupted(worker)
        for worker in state.workers
    )
    volatile = [d for d, row in enumerate(state.undo) if row is not None]
    for chosen in range(1 << len(volatile)):
        undone = tuple(d for number, d in enumerate(volatile) if chosen >> number & 1)
        rows = tuple(before if d in undone and before else row for d, (row, before) in enumerate(_both(state)))
        after = state._replace(rows=rows, undo=(None,) * len(rows), workers=workers)
        yield Step("restart", -1, undone, _spent(after, "restarts"), fault=True)


def _both(state: State) -> Iterator[tuple[Row, Row | None]]:
    return zip(state.rows, state.undo, strict=True)


def _due(state: State) -> Iterator[Step]:
    """A due time comes. It is a stall if it is that of a claim whose worker lives and has yet to hold the row."""
    for d, row in enumerate(state.rows):
        if row.place != PENDING or row.due:
            continue
        after = state._replace(rows=(*state.rows[:d], row._replace(due=True), *state.rows[d + 1 :]))
        if not any(_about_to_hold(worker, d, row.attempts) for worker in state.workers):
            yield Step("due", -1, (d,), after)
        elif state.left.stalls:
            yield Step("stall", -1, (d,), _spent(after, "stalls"), fault=True)


def _about_to_hold(worker: Worker, delivery: int, attempts: int) -> bool:
    if delivery in worker.held and worker.at in (At.HELD, At.LOCKED, At.WRITTEN):
        return False
    return any(
        claim.delivery == delivery and claim.attempts == attempts and not claim.crashed for claim in worker.taken
    )
